PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES('0024');
CREATE TABLE counter (
	name VARCHAR NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO counter VALUES('revision',31);
INSERT INTO counter VALUES('session',0);
CREATE TABLE node (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	state VARCHAR NOT NULL, 
	agent_address VARCHAR NOT NULL, 
	cpus INTEGER NOT NULL, 
	memory_bytes BIGINT NOT NULL, 
	version VARCHAR NOT NULL, 
	incarnation VARCHAR NOT NULL, 
	session BIGINT NOT NULL, 
	message TEXT NOT NULL, address VARCHAR DEFAULT '' NOT NULL, spec JSON DEFAULT '{}' NOT NULL, generation BIGINT DEFAULT '1' NOT NULL, revision BIGINT DEFAULT '0' NOT NULL, broker_tls BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO node VALUES('n1','58f268c8-6a9b-4d86-b277-2ab16d072229',1795972585333387,1795972585426783,'EXPECTED','',0,0,'','',0,'waits','','{"description": "", "labels": {"rack": "a"}, "capacity": {"cpus": 0.0, "memory_bytes": 0}, "cordoned": false, "draining": false}',1,31,0);
INSERT INTO node VALUES('n2','5165ad8c-8bb7-4920-937a-12a6db946ba5',1795972585333387,1795972585333387,'ONLINE','127.0.0.1:7000',4,17179869184,'0.1.0','',3,'','','{"description": "", "labels": {}, "capacity": {"cpus": 0.0, "memory_bytes": 0}, "cordoned": false, "draining": false}',1,3,1);
CREATE TABLE broker_cluster (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	generation BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	goal VARCHAR NOT NULL, 
	spec JSON NOT NULL, 
	note TEXT NOT NULL, 
	status JSON NOT NULL, 
	kafka_cluster_id VARCHAR NOT NULL, 
	reachable BOOLEAN, seen JSON DEFAULT '{}' NOT NULL, force BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO broker_cluster VALUES('far','8d388b59-8a80-4940-a99a-e43157791e2e',1795972585333387,1795972585333387,1,4,'RUNNING','{"bootstrap_servers": "far-1:9092,far-2:9092", "client_properties": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "sealed:1:bRyKtkMvjCQPtlwHrlH1Wz7-OKU0lZFDK4WkCJTpzRXK-LE39XBu1XzAFLTbTKCbdE3kkt8EE0dV2s5OLKjSH37tS_E7vH0KXK1UiJ46sHgRwsBHkDxNmUusshTH_oICbCwdKyt7QASk2_9ZulnvcAvfuRcPKW8Lt2mcLxJMOV8ZzQ0="}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}, "credential_profile": "", "credentials": {}}','','{"state": "STARTING", "message": "its brokers were not asked yet", "bootstrap_servers": "far-1:9092,far-2:9092", "stuck": false, "down_since": null}','',NULL,'{"in_sync": "", "problem": "", "refused": false}',0);
INSERT INTO broker_cluster VALUES('own','9753af6b-d7f1-49d5-a386-f49f3d820151',1795972585333387,1795972585333387,1,5,'RUNNING','{"nodes": ["n1"], "properties": {}, "controllers": 0, "port": 9092, "heap_mb": 0, "routes": {}, "metrics_port": 0, "data_folders": [], "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}, "tls": "NONE", "client_properties": {}}','','{"state": "STARTING", "message": "", "bootstrap_servers": "", "stuck": false, "down_since": 1795972585333387}','Bw36LO7ASyC-a5YErhx8Mg',NULL,'{"in_sync": "", "problem": "", "refused": false}',0);
INSERT INTO broker_cluster VALUES('brokers-dbe068a597564bac','ac281ef2-7e13-4bb0-a885-a0018bb67f56',1795972585333387,1795972585333387,1,21,'RUNNING','{"bootstrap_servers": "near:9092", "client_properties": {"ssl.keystore.password": "sealed:1:Us5nBaUoty2JJ3nGnFsR9uN1SiuwXm7uHiC4htm9V2rNjcUNl58Ay6acUw=="}, "annotations": {"description": "", "labels": {}, "origin": {"api": "keelman", "scope": "dedicated_connector-brokers", "key": "8c57776c11905449b3fe1c834d387fe282874d46316641c88e120d98796fd10c"}, "extra": null}, "credential_profile": "", "credentials": {}}','','{"state": "STARTING", "message": "its brokers were not asked yet", "bootstrap_servers": "near:9092", "stuck": false, "down_since": null}','',NULL,'{"in_sync": "", "problem": "", "refused": false}',0);
CREATE TABLE worker_cluster (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	generation BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	goal VARCHAR NOT NULL, 
	spec JSON NOT NULL, 
	note TEXT NOT NULL, 
	status JSON NOT NULL, 
	broker_cluster VARCHAR NOT NULL, force BOOLEAN DEFAULT 0 NOT NULL, process_generation BIGINT DEFAULT '1' NOT NULL, restart BIGINT DEFAULT '0' NOT NULL, plugin_history JSON DEFAULT '{}' NOT NULL, scaling JSON DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (name), 
	FOREIGN KEY(broker_cluster) REFERENCES broker_cluster (name)
);
INSERT INTO worker_cluster VALUES('demo','39ac7260-d362-43ba-84a7-323d80a32669',1795972585333387,1795972585333387,2,29,'RUNNING','{"broker_cluster": "far", "nodes": [], "count": 1, "properties": {"ssl.key.password": "sealed:1:d-h66KBC8R4o0x1TtD-fMeMT6JijTQeFaxto_0R-gy6cerQH18eqIA=="}, "node_selector": {}, "port": 0, "metrics_port": 0, "admin_port": 0, "reserved_ports": [], "https": false, "shared_offset_topic": false, "limits": {"cpus": 0.0, "memory_bytes": 0}, "annotations": {"description": "first", "labels": {"team": "blue"}, "origin": null, "extra": {"tags": {"a": "b"}, "token": "sealed:1:GXw7rf6rOLumNWkJ37frtUrzSCzTHziN-_60J4YNIDqCzCNs4wLDuFKa"}}, "plugins": [], "libraries": [], "engine": "KEELMAN", "routes": {}, "log_delivery": null, "autoscale": null}','','{"state": "STARTING", "message": "the Spark service is starting", "ready_workers": 1, "rest_urls": ["http://127.0.0.1:8083"], "rollout": {"state": "ROLLING", "updated_workers": 0, "workers": 1, "worker": "", "message": ""}, "stuck": false, "leaving_workers": 0, "down_since": null}','far',0,1,0,'{"former": null, "went_back": null}','{"workers": 0, "former_workers": 0, "time": null, "reason": ""}');
INSERT INTO worker_cluster VALUES('wide','fa69bcfd-a6d0-4889-afab-d39df7419ff8',1795972585333387,1795972585333387,1,7,'STOPPED','{"broker_cluster": "own", "nodes": [], "count": 0, "properties": {}, "node_selector": {}, "port": 0, "metrics_port": 0, "admin_port": 0, "reserved_ports": [], "https": false, "shared_offset_topic": false, "limits": {"cpus": 0.0, "memory_bytes": 0}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}, "plugins": [], "libraries": [], "engine": "KEELMAN", "routes": {}, "log_delivery": null, "autoscale": {"min_workers": 1, "max_workers": 3, "scale_in_cpu_percent": 20.0, "scale_out_cpu_percent": 80.0, "scale_out_lag_records": 0, "tasks_per_worker": 0, "max_tasks": 0, "tasks_up_to_partitions": false, "sample_seconds": 5.0, "samples": 3, "cool_down_seconds": 60.0}}','','{"state": "STOPPED", "message": "", "ready_workers": 0, "rest_urls": [], "rollout": null, "stuck": false, "leaving_workers": 0, "down_since": null}','own',0,1,0,'{"former": null, "went_back": null}','{"workers": 0, "former_workers": 0, "time": null, "reason": ""}');
INSERT INTO worker_cluster VALUES('mirror','ebe02c1e-48ce-40d0-87aa-f4363dd374ab',1795972585333387,1795972585333387,2,23,'RUNNING','{"broker_cluster": "brokers-dbe068a597564bac", "nodes": [], "count": 1, "properties": {"config.storage.topic": "keelman_connect_configs_mirror_d32dcaa1-a92f-49d5-b06b-97eca6a6f921", "offset.storage.topic": "keelman_connect_offsets_mirror_d32dcaa1-a92f-49d5-b06b-97eca6a6f921", "status.storage.topic": "keelman_connect_status_mirror_d32dcaa1-a92f-49d5-b06b-97eca6a6f921", "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter", "group.id": "keelman-mirror-d32dcaa1-a92f-49d5-b06b-97eca6a6f921"}, "node_selector": {}, "port": 0, "metrics_port": 0, "admin_port": 0, "reserved_ports": [], "https": false, "shared_offset_topic": false, "limits": {"cpus": 0.0, "memory_bytes": 0}, "annotations": {"description": "", "labels": {}, "origin": {"api": "keelman", "scope": "dedicated_connector", "key": "mirror"}, "extra": null}, "plugins": [], "libraries": [], "engine": "KEELMAN", "routes": {}, "log_delivery": null, "autoscale": null}','','{"state": "STARTING", "message": "", "ready_workers": 0, "rest_urls": [], "rollout": null, "stuck": false, "leaving_workers": 0, "down_since": 1795972585333387}','brokers-dbe068a597564bac',0,1,0,'{"former": null, "went_back": null}','{"workers": 0, "former_workers": 0, "time": null, "reason": ""}');
CREATE TABLE workload (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	node VARCHAR NOT NULL, 
	generation BIGINT NOT NULL, 
	goal VARCHAR NOT NULL, 
	spec JSON NOT NULL, 
	status JSON, 
	has_run BOOLEAN NOT NULL, 
	tried_ports JSON NOT NULL, limits JSON DEFAULT '{}' NOT NULL, force BOOLEAN DEFAULT 0 NOT NULL, trial JSON DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (name), 
	FOREIGN KEY(node) REFERENCES node (name)
);
INSERT INTO workload VALUES('worker/demo/0','3f0c','n2',2,'RUNNING','{"worker_cluster": "demo", "host": "127.0.0.1", "port": 8083, "properties": {"ssl.key.password": "sealed:1:q_kZ0eNoOhUtMZI6dWnSiRK6GtzWuV835aJ3vj0ijgoo-Bb9d76w8Q==", "group.id": "keelman-demo"}, "spark_address": "127.0.0.1:7430", "reports_bootstrap_servers": "", "reports_client_properties": {}, "metrics_port": 0, "reserved_ports": [], "admin_port": 0, "https": false, "restart": 0, "plugins": [], "libraries": [], "kafka_connect": false, "routes": {"h": "10.0.0.1"}, "log_targets": {"name": "", "file_group": "", "bucket": "", "prefix": "", "buckets": "", "region": "", "topic": ""}}','{"state": "RUNNING", "generation": 2, "pid": 77, "start_time": 1793534400000000, "restarts": 0, "exit_code": null, "message": "", "reason": "", "observe_time": 1793534400000000, "memory_bytes": 5, "limited_by": "", "log_problems": []}',1,'[8084]','{"cpus": 0.0, "memory_bytes": 0}',0,'{"cluster_generation": 0, "restarts": 0, "is_open": false}');
INSERT INTO workload VALUES('spark/n2','3f0d','n2',1,'STOPPED','{"host": "127.0.0.1", "port": 7430, "master": "local[2]", "reports_bootstrap_servers": "", "reports_client_properties": {}}',NULL,0,'[]','{"cpus": 0.0, "memory_bytes": 0}',0,'{"cluster_generation": 0, "restarts": 0, "is_open": false}');
CREATE TABLE outbox (
	revision BIGINT NOT NULL, 
	time BIGINT NOT NULL, 
	noun VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	payload BLOB NOT NULL, 
	PRIMARY KEY (revision)
);
INSERT INTO outbox VALUES(1,1795972585333387,'node','n1',X'0801120c08e9bbb1d80610f8a9fc9e01180122026e312a5c0a026e31122435386632363863382d366139622d346438362d623237372d3261623136643037323232391a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a020804320b12090a047261636b1201613801420131');
INSERT INTO outbox VALUES(2,1795972585333387,'node','n2',X'0802120c08e9bbb1d80610f8a9fc9e01180122026e322a510a026e32122435313635616438632d386262372d343932302d393337612d3132613664623934366261351a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a02080432003801420132');
INSERT INTO outbox VALUES(3,1795972585333387,'node','n2',X'0803120c08e9bbb1d80610f8a9fc9e01180222026e322a7b0a026e32122435313635616438632d386262372d343932302d393337612d3132613664623934366261351a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a2c0801120e3132372e302e302e313a3730303018042080808080402a05302e312e3042093132372e302e302e3132003801420133');
INSERT INTO outbox VALUES(4,1795972585333387,'broker_cluster','far',X'0804120c08e9bbb1d80610f8a9fc9e011801220366617232f8010a03666172122438643338386235392d386138302d343934302d613939612d6534333135373739316532651a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e0128013201343a6f126d0a156661722d313a393039322c6661722d323a39303932121c0a107361736c2e6a6161732e636f6e66696712085b68696464656e5d12170a0e7361736c2e6d656368616e69736d1205504c41494e121d0a1173656375726974792e70726f746f636f6c12085341534c5f53534c42390801121e6974732062726f6b6572732077657265206e6f742061736b6564207965741a156661722d313a393039322c6661722d323a39303932');
INSERT INTO outbox VALUES(5,1795972585333387,'broker_cluster','own',X'0805120c08e9bbb1d80610f8a9fc9e01180122036f776e32750a036f776e122439373533616636622d643766312d343964352d613338362d6634396633643832303135311a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e0128013201353a0b0a090a026e312084474801421a08012216427733364c4f37415379432d61355945726878384d67');
INSERT INTO outbox VALUES(6,1795972585333387,'worker_cluster','demo',X'0806120c08e9bbb1d80610f8a9fc9e011801220464656d6f3ace010a0464656d6f122433396163373236302d643336322d343362612d383461372d3332336438306133323636391a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e0128013201363a6b0a036661721801221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a056669727374320c0a047465616d1204626c756582012b0a140a0474616773120c2a0a0a080a016112031a01620a130a05746f6b656e120a1a085b68696464656e5d980101421208051a0c6b65656c6d616e2d64656d6f2801');
INSERT INTO outbox VALUES(7,1795972585333387,'worker_cluster','wide',X'0807120c08e9bbb1d80610f8a9fc9e0118012204776964653a8e010a0477696465122466613639626366642d613664302d343838392d616661622d6433396466373431396666381a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e0128013201373a2b0a036f776e980101aa0120080110031900000000000034402100000000000054404202080548035202083c421208051a0c6b65656c6d616e2d776964652801');
INSERT INTO outbox VALUES(8,1795972585333387,'worker_cluster','demo',X'0808120c08e9bbb1d80610f8a9fc9e011802220464656d6f3ace010a0464656d6f122433396163373236302d643336322d343362612d383461372d3332336438306133323636391a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e0128023201383a6b0a036661721801221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a056669727374320c0a047465616d1204626c756582012b0a140a0474616773120c2a0a0a080a016112031a01620a130a05746f6b656e120a1a085b68696464656e5d980101421208011a0c6b65656c6d616e2d64656d6f2801');
INSERT INTO outbox VALUES(9,1795972585333387,'workload','worker/demo/0',X'0809120c08e9bbb1d80610f8a9fc9e011801220d776f726b65722f64656d6f2f3042a6010a0d776f726b65722f64656d6f2f301204336630631a026e3220022801326d1a6b0a0464656d6f12093132372e302e302e3118933f22180a0867726f75702e6964120c6b65656c6d616e2d64656d6f221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a0e3132372e302e302e313a373433307a0d0a0168120831302e302e302e313a1808041002184d220608c0d39cd7064a0608c0d39cd7065005');
INSERT INTO outbox VALUES(10,1795972585333387,'workload','spark/n2',X'080a120c08e9bbb1d80610f8a9fc9e0118012208737061726b2f6e3242340a08737061726b2f6e321204336630641a026e3220012802321a12180a093132372e302e302e3110863a1a086c6f63616c5b325d');
INSERT INTO outbox VALUES(11,1795972585333387,'document','connector/team/one',X'080b120c08e9bbb1d80610f8a9fc9e0118012212636f6e6e6563746f722f7465616d2f6f6e656aba010a09636f6e6e6563746f7212047465616d1a036f6e65222437666437643666332d366461372d346335312d396238322d3439323430336238613130662a0c08e9bbb1d80610f8a9fc9e01320c08e9bbb1d80610f8a9fc9e013a02313142460a250a01611220321e0a0911000000000000f03f0a091100000000000004400a0208000a0220010a1d0a016212182a160a140a06736563726574120a1a085b68696464656e5d4a140a0870617373776f726412085b68696464656e5d');
INSERT INTO outbox VALUES(12,1795972585333387,'secret','vault',X'080c120c08e9bbb1d80610f8a9fc9e01180122057661756c7482016b0a057661756c74122434643764333561632d613538322d343163332d613934392d3866373636646536626131351a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a023132320c6f6620746865207661756c74420870617373776f7264420475736572');
INSERT INTO outbox VALUES(13,1795972585333387,'worker_configuration','plain',X'080d120c08e9bbb1d80610f8a9fc9e0118012205706c61696e7a710a05706c61696e122464373733306565302d343566312d343061642d613533392d3466303165333030396530631a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a0231333207737472696e677352190801120c08e9bbb1d80610f8a9fc9e011a07737472696e6773');
INSERT INTO outbox VALUES(14,1795972585333387,'worker_configuration','plain',X'080e120c08e9bbb1d80610f8a9fc9e0118022205706c61696e7a83010a05706c61696e122464373733306565302d343566312d343061642d613533392d3466303165333030396530631a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a0231343207737472696e677352190801120c08e9bbb1d80610f8a9fc9e011a07737472696e677352100802120c08e9bbb1d80610f8a9fc9e01');
INSERT INTO outbox VALUES(15,1795972585333387,'connector_definition','copies',X'080f120c08e9bbb1d80610f8a9fc9e0118012206636f7069657352af010a06636f70696573122435636132306662612d306330642d346565622d383761612d3032376235303039653132311a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320231353a570a0464656d6f1206636f706965731a210a0f636f6e6e6563746f722e636c617373120e46696c6553747265616d53696e6b1a170a0b64622e70617373776f726412085b68696464656e5d1a0b0a06746f7069637312017440014a021801');
INSERT INTO outbox VALUES(16,1795972585333387,'operation','op-06616d73f9a28b-730f',X'0810120c08e9bbb1d80610f8a9fc9e01180122166f702d30363631366437336639613238622d373330665ad0010a166f702d30363631366437336639613238622d37333066122432623131613564382d383538662d343136652d616231382d3366656465396435653962301a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a02313630013a290a14636f6e6e6563746f725f646566696e6974696f6e1206636f706965731801220752554e4e494e4748015a0f0a0b61736b2d776f726b65727310015a100a0c77726974652d636f6e66696710015a0d0a097365742d737461746510015a0f0a0b61776169742d73746174651001');
INSERT INTO outbox VALUES(17,1795972585333387,'connector_definition','copies',X'0811120c08e9bbb1d80610f8a9fc9e0118022206636f7069657352c9010a06636f70696573122435636132306662612d306330642d346565622d383761612d3032376235303039653132311a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320231373a570a0464656d6f1206636f706965731a210a0f636f6e6e6563746f722e636c617373120e46696c6553747265616d53696e6b1a170a0b64622e70617373776f726412085b68696464656e5d1a0b0a06746f7069637312017440044a1c180122166f702d30363631366437336639613238622d373330662801');
INSERT INTO outbox VALUES(18,1795972585333387,'topic','orders',X'0812120c08e9bbb1d80610f8a9fc9e01180122066f7264657273627d0a066f7264657273122434316166393761352d346366622d343838662d623432652d3464653832303231646436641a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320231383a250a0366617212066f726465727318032a140a0c726574656e74696f6e2e6d7312043130303040014a020801');
INSERT INTO outbox VALUES(19,1795972585333387,'operation','op-06616d73f9a28b-c472',X'0813120c08e9bbb1d80610f8a9fc9e01180122166f702d30363631366437336639613238622d633437325ad6010a166f702d30363631366437336639613238622d63343732122432663661643162372d376365632d343061362d613033332d3335666532343033663532301a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a02313930023a1a0a05746f70696312066f72646572731801220750524553454e5448015a0f0a0b61736b2d62726f6b65727310015a100a0c6372656174652d746f70696310015a120a0e6164642d706172746974696f6e7310015a0e0a0a7365742d636f6e66696710015a0f0a0b61776169742d746f7069631001');
INSERT INTO outbox VALUES(20,1795972585333387,'topic','orders',X'0814120c08e9bbb1d80610f8a9fc9e01180222066f72646572736295010a066f7264657273122434316166393761352d346366622d343838662d623432652d3464653832303231646436641a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320232303a250a0366617212066f726465727318032a140a0c726574656e74696f6e2e6d7312043130303040024a1a080222166f702d30363631366437336639613238622d63343732');
INSERT INTO outbox VALUES(21,1795972585333387,'broker_cluster','brokers-dbe068a597564bac',X'0815120c08e9bbb1d80610f8a9fc9e011801221862726f6b6572732d6462653036386135393735363462616332ae020a1862726f6b6572732d64626530363861353937353634626163122461633238316566322d376531332d346262302d613838352d6130303138626236376635361a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320232313a9a01122e0a096e6561723a3930393212210a1573736c2e6b657973746f72652e70617373776f726412085b68696464656e5d2a680a076b65656c6d616e121b6465646963617465645f636f6e6e6563746f722d62726f6b6572731a4038633537373736633131393035343439623366653163383334643338376665323832383734643436333136363431633838653132306439383739366664313063422d0801121e6974732062726f6b6572732077657265206e6f742061736b6564207965741a096e6561723a39303932');
INSERT INTO outbox VALUES(22,1795972585333387,'worker_cluster','mirror',X'0816120c08e9bbb1d80610f8a9fc9e01180122066d6972726f723ab4050a066d6972726f72122465626530326331652d343863652d343064302d383761612d6634333633646433373461621a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320232323aa6040a1862726f6b6572732d646265303638613539373536346261631801225b0a14636f6e6669672e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f636f6e666967735f6d6972726f725f64333264636161312d613932662d343964352d623036622d393765636136613666393231223f0a0867726f75702e696412336b65656c6d616e2d6d6972726f722d64333264636161312d613932662d343964352d623036622d39376563613661366639323122410a0d6b65792e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e766572746572225b0a146f66667365742e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f6f6666736574735f6d6972726f725f64333264636161312d613932662d343964352d623036622d393765636136613666393231225a0a147374617475732e73746f726167652e746f70696312426b65656c6d616e5f636f6e6e6563745f7374617475735f6d6972726f725f64333264636161312d613932662d343964352d623036622d39376563613661366639323122430a0f76616c75652e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e7665727465727a260a076b65656c6d616e12136465646963617465645f636f6e6e6563746f721a066d6972726f72980101423908051a336b65656c6d616e2d6d6972726f722d64333264636161312d613932662d343964352d623036622d3937656361366136663932312801');
INSERT INTO outbox VALUES(23,1795972585333387,'worker_cluster','mirror',X'0817120c08e9bbb1d80610f8a9fc9e01180222066d6972726f723ab4050a066d6972726f72122465626530326331652d343863652d343064302d383761612d6634333633646433373461621a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012802320232333aa6040a1862726f6b6572732d646265303638613539373536346261631801225b0a14636f6e6669672e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f636f6e666967735f6d6972726f725f64333264636161312d613932662d343964352d623036622d393765636136613666393231223f0a0867726f75702e696412336b65656c6d616e2d6d6972726f722d64333264636161312d613932662d343964352d623036622d39376563613661366639323122410a0d6b65792e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e766572746572225b0a146f66667365742e73746f726167652e746f70696312436b65656c6d616e5f636f6e6e6563745f6f6666736574735f6d6972726f725f64333264636161312d613932662d343964352d623036622d393765636136613666393231225a0a147374617475732e73746f726167652e746f70696312426b65656c6d616e5f636f6e6e6563745f7374617475735f6d6972726f725f64333264636161312d613932662d343964352d623036622d39376563613661366639323122430a0f76616c75652e636f6e76657274657212306f72672e6170616368652e6b61666b612e636f6e6e6563742e73746f726167652e537472696e67436f6e7665727465727a260a076b65656c6d616e12136465646963617465645f636f6e6e6563746f721a066d6972726f72980101423908011a336b65656c6d616e2d6d6972726f722d64333264636161312d613932662d343964352d623036622d3937656361366136663932312801');
INSERT INTO outbox VALUES(24,1795972585333387,'operation','op-06616d73f9a28b-7988',X'0818120c08e9bbb1d80610f8a9fc9e01180122166f702d30363631366437336639613238622d373938385af5010a166f702d30363631366437336639613238622d37393838122466663762336430332d393331312d346432352d396463612d3934663833666133356663631a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a02323430033a280a136465646963617465645f636f6e6e6563746f7212066d6972726f721801220752554e4e494e4748015a110a0d72656163682d62726f6b65727310015a110a0d73746172742d776f726b65727310015a0f0a0b61736b2d776f726b65727310015a100a0c77726974652d636f6e66696710015a0d0a097365742d737461746510015a0f0a0b61776169742d73746174651001');
INSERT INTO outbox VALUES(25,1795972585333387,'dedicated_connector','mirror',X'0819120c08e9bbb1d80610f8a9fc9e01180122066d6972726f7272ef020a066d6972726f72122464333264636161312d613932662d343964352d623036622d3937656361366136663932311a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012801320232353ace010a066d6972726f7212230a0f636f6e6e6563746f722e636c617373121046696c6553747265616d536f7572636512170a0b64622e70617373776f726412085b68696464656e5d120a0a0466696c6512022f66120a0a05746f706963120174222e0a096e6561723a3930393212210a1573736c2e6b657973746f72652e70617373776f726412085b68696464656e5d2a02080172106b65656c6d616e5f636f6e6e6563745f88010192012464333264636161312d613932662d343964352d623036622d39376563613661366639323140034a4a22066d6972726f722a1862726f6b6572732d6462653036386135393735363462616332166f702d30363631366437336639613238622d37393838520e4b444e42584a4b4b455352503252');
INSERT INTO outbox VALUES(26,1795972585333387,'plugin','acme/1.2',X'081a120c08e9bbb1d80610f8a9fc9e011801220861636d652f312e324a9d020a0461636d651203312e321a0435613165220c08e9bbb1d80610f8a9fc9e012a0c08e9bbb1d80610f8a9fc9e01320232363a0777656174686572420c0a047465616d1204626c75654a0c61636d652d312e322e6a61725002580a6240303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030306a20303030303030303030303030303030303030303030303030303030303030303072200a0d636f6d2e61636d652e53696e6b120473696e6b1a03312e3222046a6176617a126120636c617373206973206d697373696e678a010d0a056f686172611201731a016b9201160a140a0474616773120c2a0a0a080a016112031a0162');
INSERT INTO outbox VALUES(27,1795972585333387,'operation','op-06616d73f9a28b-eb32',X'081b120c08e9bbb1d80610f8a9fc9e01180122166f702d30363631366437336639613238622d656233325a8e010a166f702d30363631366437336639613238622d65623332122462353830636163312d363863372d343962652d613035372d3066343438343131306539351a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a023237300a3a1f0a0d706c7567696e5f696d706f72741206636f70696564220641435449564548015a090a0566657463681001');
INSERT INTO outbox VALUES(28,1795972585333387,'plugin_import','copied',X'081c120c08e9bbb1d80610f8a9fc9e0118012206636f706965648a017b0a06636f70696564122463643437333435322d613333632d343338612d623532302d6536393866623032346232661a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012a02323852100a07706c7567696e731205612e6a617258018a01166f702d30363631366437336639613238622d65623332');
INSERT INTO outbox VALUES(29,1795972585333387,'worker_cluster','demo',X'081d120c08e9bbb1d80610f8a9fc9e011802220464656d6f3a8d020a0464656d6f122433396163373236302d643336322d343362612d383461372d3332336438306133323636391a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d80610f8a9fc9e012802320232393a6b0a036661721801221c0a1073736c2e6b65792e70617373776f726412085b68696464656e5d2a056669727374320c0a047465616d1204626c756582012b0a140a0474616773120c2a0a0a080a016112031a01620a130a05746f6b656e120a1a085b68696464656e5d98010142500801121d74686520537061726b2073657276696365206973207374617274696e671a0c6b65656c6d616e2d64656d6f200128013215687474703a2f2f3132372e302e302e313a38303833520408011801');
INSERT INTO outbox VALUES(30,1795972585408510,'document','connector/team/two',X'081e120c08e9bbb1d80610b0bce5c20118012212636f6e6e6563746f722f7465616d2f74776f6a5c0a09636f6e6e6563746f7212047465616d1a0374776f222434396564343933662d366663372d343166312d623334642d3962393235303331643163662a0c08e9bbb1d80610b0bce5c201320c08e9bbb1d80610b0bce5c2013a023330');
INSERT INTO outbox VALUES(31,1795972585426783,'node','n1',X'081f120c08e9bbb1d8061098e2c0cb01180222026e312a640a026e31122435386632363863382d366139622d346438362d623237372d3261623136643037323232391a0c08e9bbb1d80610f8a9fc9e01220c08e9bbb1d8061098e2c0cb012a09080432057761697473320b12090a047261636b120161380142023331');
CREATE TABLE relay (
	id INTEGER NOT NULL, 
	holder VARCHAR NOT NULL, 
	epoch BIGINT NOT NULL, 
	beat BIGINT NOT NULL, 
	published BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO relay VALUES(1,'',0,0,0);
CREATE TABLE request (
	request_id VARCHAR NOT NULL, 
	method VARCHAR NOT NULL, 
	time BIGINT NOT NULL, 
	answer BLOB NOT NULL, 
	PRIMARY KEY (request_id)
);
INSERT INTO request VALUES('first-request','PutDocument',1795972585408510,X'0a5c0a09636f6e6e6563746f7212047465616d1a0374776f222434396564343933662d366663372d343166312d623334642d3962393235303331643163662a0c08e9bbb1d80610b0bce5c201320c08e9bbb1d80610b0bce5c2013a023330');
CREATE TABLE sealing (
	id INTEGER NOT NULL, 
	proof TEXT NOT NULL, handed_on TEXT DEFAULT '' NOT NULL, change_time BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO sealing VALUES(1,'sealed:1:JusbEtbO-SGVKL4DaRKYljjl2x1GtDD0hFRAfuA2kZt59_ME9ii9n5vFuDopnynYjwqTa9TUsSC1l77k2jP74qJF5mk1','',0);
CREATE TABLE IF NOT EXISTS "plan" (
	revision BIGINT NOT NULL, 
	time BIGINT NOT NULL, 
	changes JSON NOT NULL, 
	PRIMARY KEY (revision)
);
INSERT INTO "plan" VALUES(28,1795972585333387,'[{"workload": "worker/demo/0", "action": "PLACE", "node": "n2", "generation": 2, "reason": "no worker is there", "from_node": ""}]');
CREATE TABLE plugin (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	file_name TEXT NOT NULL, 
	kind VARCHAR NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	sha256 VARCHAR NOT NULL, 
	md5 VARCHAR NOT NULL, 
	storage VARCHAR NOT NULL, 
	content JSON NOT NULL, 
	description TEXT NOT NULL, 
	labels JSON NOT NULL, spec JSON DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO plugin VALUES('acme/1.2','5a1e',1795972585333387,1795972585333387,26,'acme-1.2.jar','JAR',10,'0000000000000000000000000000000000000000000000000000000000000000','00000000000000000000000000000000','database','{"classes": [{"class_name": "com.acme.Sink", "type": "sink", "version": "1.2", "language": "java", "path": ""}], "problems": ["a class is missing"]}','weather','{"team": "blue"}','{"origin": {"api": "ohara", "scope": "s", "key": "k"}, "extra": {"tags": {"a": "b"}}}');
CREATE TABLE plugin_chunk (
	uid VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	time BIGINT NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (uid, number)
);
CREATE TABLE installation (
	id INTEGER NOT NULL, 
	uid VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO installation VALUES(1,'4479acc76a5a4efcb5b8dde9cdcb0a18');
CREATE TABLE document (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	spec JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO document VALUES('connector/team/one','7fd7d6f3-6da7-4c51-9b82-492403b8a10f',1795972585333387,1795972585333387,11,'{"content": {"a": [1.0, 2.5, null, true], "b": {"secret": "sealed:1:vEbecjeb4BYUS6-lcoVo0IWSjEpJljLtiroV4v9HMAR2g-wHwr96KUGVBuw="}}, "secrets": {"password": "sealed:1:s0wQ-LWmWj4bXZfAUygIGhZ8m_I7DneF_dUlOpfB9LMBNF2K5xehgWa613KX"}}');
INSERT INTO document VALUES('connector/team/two','49ed493f-6fc7-41f1-b34d-9b925031d1cf',1795972585408510,1795972585408510,30,'{"content": {}, "secrets": {}}');
CREATE TABLE operation (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	kind VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	target JSON NOT NULL, 
	content JSON NOT NULL, 
	spec JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO operation VALUES('op-06616d73f9a28b-730f','2b11a5d8-858f-416e-ab18-3fede9d5e9b0',1795972585333387,1795972585333387,16,'APPLY_CONNECTOR','PENDING','{"noun": "connector_definition", "name": "copies", "generation": 1, "goal": "RUNNING"}','{"steps": [{"name": "ask-workers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "write-config", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "set-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "await-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}','{"worker_cluster": "demo", "connector": "copies", "config": {"connector.class": "FileStreamSink", "topics": "t", "db.password": "sealed:1:hYx0F_mP0J24BsU6t9-_ZGx9I59veEByndTyH0xzJKf6KM816IwmhjmDIaw8ks0="}}');
INSERT INTO operation VALUES('op-06616d73f9a28b-c472','2f6ad1b7-7cec-40a6-a033-35fe2403f520',1795972585333387,1795972585333387,19,'APPLY_TOPIC','PENDING','{"noun": "topic", "name": "orders", "generation": 1, "goal": "PRESENT"}','{"steps": [{"name": "ask-brokers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "create-topic", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "add-partitions", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "set-config", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "await-topic", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}','{"spec": {"broker_cluster": "far", "topic": "orders", "partitions": 3, "replication_factor": 0, "config": {"retention.ms": "1000"}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}, "known": false, "known_id": ""}');
INSERT INTO operation VALUES('op-06616d73f9a28b-7988','ff7b3d03-9311-4d25-9dca-94f83fa35fcc',1795972585333387,1795972585333387,24,'CREATE_DEDICATED','PENDING','{"noun": "dedicated_connector", "name": "mirror", "generation": 1, "goal": "RUNNING"}','{"steps": [{"name": "reach-brokers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "start-workers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "ask-workers", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "write-config", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "set-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}, {"name": "await-state", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}','{"worker_cluster": "mirror", "connector": "mirror", "config": {"connector.class": "FileStreamSource", "file": "/f", "topic": "t", "db.password": "sealed:1:eJ9uWFEggO_olxwGEJtuAn2gRn3XBTizujHtd1-lxHQHv71XIC36u1fl2OVFNA=="}, "uid_of_dedicated": "d32dcaa1-a92f-49d5-b06b-97eca6a6f921"}');
INSERT INTO operation VALUES('op-06616d73f9a28b-eb32','b580cac1-68c7-49be-a057-0f4484110e95',1795972585333387,1795972585333387,27,'IMPORT_PLUGIN','PENDING','{"noun": "plugin_import", "name": "copied", "generation": 0, "goal": "ACTIVE"}','{"steps": [{"name": "fetch", "state": "PENDING", "message": "", "start_time": null, "end_time": null, "attempts": 0, "undo_time": null}], "origin": null, "message": "", "error": null, "end_time": null, "back_time": null, "back_failed": false, "cancel_reason": ""}','{}');
CREATE TABLE lease (
	name VARCHAR NOT NULL, 
	holder VARCHAR NOT NULL, 
	epoch BIGINT NOT NULL, 
	beat BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO lease VALUES('operations','',0,0);
INSERT INTO lease VALUES('autoscaling','',0,0);
INSERT INTO lease VALUES('leader','',0,0);
CREATE TABLE topic (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	generation BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	goal VARCHAR NOT NULL, 
	spec JSON NOT NULL, 
	applied JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO topic VALUES('orders','41af97a5-4cfb-488f-b42e-4de82021dd6d',1795972585333387,1795972585333387,1,20,'PRESENT','{"broker_cluster": "far", "topic": "orders", "partitions": 3, "replication_factor": 0, "config": {"retention.ms": "1000"}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}','{"operation": "op-06616d73f9a28b-c472", "ended": false, "problem": "", "failed": false, "generation": 0, "goal": "ABSENT", "topic_id": ""}');
CREATE TABLE connector_definition (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	generation BIGINT NOT NULL, 
	goal VARCHAR NOT NULL, 
	spec JSON NOT NULL, 
	status JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO connector_definition VALUES('copies','5ca20fba-0c0d-4eeb-87aa-027b5009e121',1795972585333387,1795972585333387,17,1,'RUNNING','{"wanted": {"worker_cluster": "demo", "connector": "copies", "config": {"connector.class": "FileStreamSink", "topics": "t", "db.password": "sealed:1:9iLa2JBh4DaF5eW_d29xw3VARwkGD-cOZBjrKfgz-jdjX9Hvz15y5sKPz-UrwL4="}, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}, "applied": {"generation": 0, "time": null, "goal": "ABSENT", "config": {}, "uid": ""}}','{"operation": "op-06616d73f9a28b-730f", "applying": true, "message": ""}');
CREATE TABLE dedicated_connector (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	generation BIGINT NOT NULL, 
	goal VARCHAR NOT NULL, 
	spec JSON NOT NULL, 
	status JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO dedicated_connector VALUES('mirror','d32dcaa1-a92f-49d5-b06b-97eca6a6f921',1795972585333387,1795972585333387,25,1,'RUNNING','{"connector": "mirror", "config": {"connector.class": "FileStreamSource", "file": "/f", "topic": "t", "db.password": "sealed:1:rtiz4WNJR9HqbLXuiaprQMfKyiioueZ7fYPkLpu6cN9Ul9kj9wEOOVwuBuQjng=="}, "broker_cluster": "", "bootstrap_servers": "near:9092", "client_properties": {"ssl.keystore.password": "sealed:1:1woZcGakTZVJpeoZISt1ZtUd9VV3-E-p9zg1vho82FKcPc7CLia_wuttLQ=="}, "capacity": {"count": 1, "worker_limits": {"cpus": 0.0, "memory_bytes": 0}, "autoscale": null}, "plugins": [], "libraries": [], "worker_configuration": null, "properties": {}, "node_selector": {}, "topic_prefix": "keelman_connect_", "topic_suffix": "d32dcaa1-a92f-49d5-b06b-97eca6a6f921", "engine": "KEELMAN", "log_delivery": null, "annotations": {"description": "", "labels": {}, "origin": null, "extra": null}}','{"broker_cluster": "brokers-dbe068a597564bac", "operation": "op-06616d73f9a28b-7988", "failure": null, "updates": 0, "connector_uid": "", "tasks_max": 0}');
CREATE TABLE worker_configuration (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	spec JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO worker_configuration VALUES('plain','d7730ee0-45f1-40ad-a539-4f01e3009e0c',1795972585333387,1795972585333387,14,'{"annotations": {"description": "strings", "labels": {}, "origin": null, "extra": null}, "revisions": [{"revision": 1, "create_time": 1795972585333387, "description": "strings"}, {"revision": 2, "create_time": 1795972585333387, "description": ""}], "secrets": {"1": "sealed:1:bWfZG4jmFid86v5t5JRhjxXmsEXqpfG1-pMxc1i63ysgyxef1GHUbeL9fY5DTk8xyqiZExjFOgYY1rY0lKGxrRk4pEPLQAtXrF7CFDnlO4gHfRIcsnzkhby-Ej45jU9gXu11P5ZTsP44lqyo-LFtvF8LD6v_Co90BTn0UkHczHH4r1asg3yt8R1etlv7dn9mGfzSqczSeaPyrDeSqIJUsBUNY4sQTM5ehxSfbfeqi3w1hdtjU8Ge6VoJY389XN5xwlNkKn2EZf0p", "2": "sealed:1:_xYD8ZDleWRfoEvhr-dF9badzJM5FyytiavBZwmYG6lccmNWttvx5Qo9nqyByKzc5kAZHBj2KHg_i6xdzyM9VOKImGW_56UFJeTPvxfS5r1NM3Quunp9tMYyS5bnpDZS-s57j9ar81l15e-aubNILzApV-AOvxAhA6397db6k98H7A-zsQeDgu1ZAn2BidyPSyHF_jDjOcf84qnt3V1S92B56EM5WviP_yGGD27XEkYddiWIcSJsVuGihY3P-vQZEw=="}}');
CREATE TABLE plugin_import (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	state VARCHAR NOT NULL, 
	content JSON NOT NULL, 
	spec JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO plugin_import VALUES('copied','cd473452-a33c-438a-b520-e698fb024b2f',1795972585333387,1795972585333387,28,'CREATING','{"source": {"bucket": "plugins", "key": "a.jar", "version": "", "content": "UNSPECIFIED"}, "code": "", "message": "", "operation": "op-06616d73f9a28b-eb32", "size_bytes": 0, "sha256": "", "md5": ""}','{"description": "", "labels": {}, "origin": null, "extra": null}');
CREATE TABLE secret (
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	update_time BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	spec JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO secret VALUES('vault','4d7d35ac-a582-41c3-a949-8f766de6ba15',1795972585333387,1795972585333387,12,'{"annotations": {"description": "of the vault", "labels": {}, "origin": null, "extra": null}, "secrets": {"user": "sealed:1:mGpuXOOJG0kpLXKEQs7EohuBOMoCZF5d7gqkxDc-", "password": "sealed:1:zlA5h_4A2_mo8I4fI2GjUtsLK6Q7sDobsM3ncuCV0yYnAbiYbOANSvSplQ=="}}');
CREATE TABLE authority (
	id INTEGER NOT NULL, 
	certificate TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	create_time BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO authority VALUES(1,replace('-----BEGIN CERTIFICATE-----\nMIIBhjCCASugAwIBAgIUWbO9ozfi3+X0VCQ7SywYJ4x6RQYwCgYIKoZIzj0EAwIw\nHzEdMBsGA1UEAwwUa2VlbG1hbiBpbnN0YWxsYXRpb24wHhcNMjYxMTI5MTcxMTI1\nWhcNNDYxMTI0MTcxNjI1WjAfMR0wGwYDVQQDDBRrZWVsbWFuIGluc3RhbGxhdGlv\nbjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMskZ3PVO3iIMBtENqJ6UZ/qJQQ4\nQJNq18vwmoyVzO3PCJCQ4MdcO00WMOxQb/6UEucSApWn24NmhebpRVI1naajRTBD\nMBIGA1UdEwEB/wQIMAYBAf8CAQAwDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBSK\n8LJeHMaXsFccjUHziOswiXOi7DAKBggqhkjOPQQDAgNJADBGAiEArustYnhr6cc0\njQadUC2GmYz264QDNZPxV0OwxKrQtpwCIQD5tzZXxzBOCDP/fbIgmL5hInD3gMjN\nQE+noips96DoOw==\n-----END CERTIFICATE-----\n','\n',char(10)),'sealed:1:PisgMc719-J6Pt8g6n5oPYTOvGjaGpZoC8Fvk3CgvxYohpoY7NO9xWitA9QAS2cbqcmoTfAlyum6CqCB9xiL0tWrCYglqF_GEBWpW-aisv5X1PZWCTpVb6JN19TBRq7QmK1NYnJnSUkVu2U7tmJp0mHp9MbneQvXk-oxxMLk23oTNIpmZjwR4gm9YVD-8N0RifDgMk_USmtHG9Ldt37hH9AF4-Y1Kfopdr0QMucj-VJtduovsATlYB_R7oJ1sWGdfuWRelYdTXQnrsV8CBBtCyNRLwtrYNi4PzmA1uCtGbxk2Ihopw6nzUZuATulTNYNtPzYcBhh1ZZzRKWz2mhR9PTZu-9sLOWwEPMmDVgB',1795972585437496);
CREATE TABLE join_token (
	name VARCHAR NOT NULL, 
	secret_digest VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	member VARCHAR NOT NULL, 
	create_time BIGINT NOT NULL, 
	expire_time BIGINT NOT NULL, 
	use_time BIGINT NOT NULL, 
	used_by VARCHAR NOT NULL, 
	used_key VARCHAR NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE certificate (
	holder VARCHAR NOT NULL, 
	key_digest VARCHAR NOT NULL, 
	hosts JSON NOT NULL, 
	issue_time BIGINT NOT NULL, 
	end_time BIGINT NOT NULL, 
	PRIMARY KEY (holder)
);
CREATE TABLE signature (
	signature VARCHAR NOT NULL, 
	attempt VARCHAR NOT NULL, 
	time BIGINT NOT NULL, 
	PRIMARY KEY (signature, attempt)
);
CREATE INDEX ix_worker_cluster_broker_cluster ON worker_cluster (broker_cluster);
CREATE INDEX ix_workload_node ON workload (node);
CREATE INDEX ix_request_time ON request (time);
CREATE INDEX ix_signature_time ON signature (time);
COMMIT;
