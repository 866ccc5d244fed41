// Prints values as Go's encoding/json writes them, a line each; record_json_writers.py runs this.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

type order struct {
	ID      int64           `json:"id"`
	Name    string          `json:"name"`
	Price   float64         `json:"price"`
	Small   float32         `json:"small"`
	Raw     []byte          `json:"raw"`
	Tags    []string        `json:"tags"`
	Nothing *int            `json:"nothing"`
	Left    string          `json:"left,omitempty"`
	More    map[string]any  `json:"more"`
	At      time.Time       `json:"at"`
	Number  json.Number     `json:"number"`
	Quoted  int64           `json:"quoted,string"`
	Names   map[int]string  `json:"names"`
	Own     json.RawMessage `json:"own"`
}

func main() {
	values := []any{
		nil, true, int64(math.MinInt64), uint64(math.MaxUint64), 0.0, math.Copysign(0, -1), 1e20, 1e21, 1e-6, 1e-7,
		123456789.125, math.MaxFloat64, math.SmallestNonzeroFloat64, float32(0.1), float32(1e21), 100.0,
		"<a href=\"x\">&'</a>", "\u2028\u2029\x00\x1f\x7f", "é€😀", string([]byte{'a', 0xff, 'b'}), "\t\n\r\b\f\\/",
		[]byte{0, 1, 255}, []int{}, []int(nil), map[string]int{}, map[string]any{"b": 1, "a": []any{1.5, nil, "x"}},
		time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC), time.Duration(1500), json.Number("12345678901234567890.10"),
		order{ID: 1, Name: "n", Price: 0.1, Small: 0.1, Raw: []byte("raw"), More: map[string]any{"z": 1, "y": 2.0},
			At: time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)), Number: "1.50", Quoted: 7,
			Names: map[int]string{10: "x", 9: "y"}, Own: json.RawMessage("{\"a\" : 1.0}")},
	}
	for _, value := range values {
		made, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(made))
	}
}
