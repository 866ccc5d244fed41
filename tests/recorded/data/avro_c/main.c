// Writes values with Avro's C library: a line of JSON in, {"avro": schema, "value": value}; a line of hex out.
// A union's value is [place, value]; bytes and fixed are texts of which each character is a byte.

#include <avro.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int problem, const char *what) {
    if (problem) {
        fprintf(stderr, "%s: %s\n", what, avro_strerror());
        exit(1);
    }
}

static size_t bytes_of(json_t *text, char *into) {
    const unsigned char *from = (const unsigned char *)json_string_value(text);
    size_t size = 0, length = json_string_length(text);
    for (size_t at = 0; at < length; at++)
        into[size++] = from[at] < 0x80 ? from[at] : (char)((from[at] << 6) | (from[++at] & 0x3f));
    return size;
}

static void set(avro_value_t *to, json_t *from) {
    char buffer[4096];
    avro_value_t child;
    const char *key;
    json_t *one;
    size_t at;
    switch (avro_value_get_type(to)) {
        case AVRO_NULL: check(avro_value_set_null(to), "null"); break;
        case AVRO_BOOLEAN: check(avro_value_set_boolean(to, json_is_true(from)), "boolean"); break;
        case AVRO_INT32: check(avro_value_set_int(to, (int32_t)json_integer_value(from)), "int"); break;
        case AVRO_INT64: check(avro_value_set_long(to, json_integer_value(from)), "long"); break;
        case AVRO_FLOAT: check(avro_value_set_float(to, (float)json_number_value(from)), "float"); break;
        case AVRO_DOUBLE: check(avro_value_set_double(to, json_number_value(from)), "double"); break;
        case AVRO_STRING:
            check(avro_value_set_string_len(to, json_string_value(from), json_string_length(from) + 1), "string");
            break;
        case AVRO_BYTES: at = bytes_of(from, buffer); check(avro_value_set_bytes(to, buffer, at), "bytes"); break;
        case AVRO_FIXED: at = bytes_of(from, buffer); check(avro_value_set_fixed(to, buffer, at), "fixed"); break;
        case AVRO_ENUM:
            at = avro_schema_enum_get_by_name(avro_value_get_schema(to), json_string_value(from));
            check(avro_value_set_enum(to, (int)at), "enum");
            break;
        case AVRO_ARRAY:
            json_array_foreach(from, at, one) {
                check(avro_value_append(to, &child, NULL), "array");
                set(&child, one);
            }
            break;
        case AVRO_MAP:
            json_object_foreach(from, key, one) {
                check(avro_value_add(to, key, &child, NULL, NULL), "map");
                set(&child, one);
            }
            break;
        case AVRO_RECORD:
            json_object_foreach(from, key, one) {
                check(avro_value_get_by_name(to, key, &child, NULL), key);
                set(&child, one);
            }
            break;
        case AVRO_UNION:
            check(avro_value_set_branch(to, (int)json_integer_value(json_array_get(from, 0)), &child), "union");
            set(&child, json_array_get(from, 1));
            break;
        default: check(1, "kind");
    }
}

int main(void) {
    static char line[1 << 20], out[1 << 20];
    while (fgets(line, sizeof line, stdin)) {
        json_t *given = json_loads(line, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
        char *text = json_dumps(json_object_get(given, "avro"), JSON_ENCODE_ANY);
        avro_schema_t schema;
        avro_value_t value;
        check(avro_schema_from_json_length(text, strlen(text), &schema), text);
        avro_value_iface_t *made = avro_generic_class_from_schema(schema);
        check(avro_generic_value_new(made, &value), "value");
        set(&value, json_object_get(given, "value"));
        avro_writer_t writer = avro_writer_memory(out, sizeof out);
        check(avro_value_write(writer, &value), "write");
        for (int64_t at = 0; at < avro_writer_tell(writer); at++) printf("%02x", (unsigned char)out[at]);
        printf("\n");
    }
    return 0;
}
