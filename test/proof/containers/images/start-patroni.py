"""Writes Patroni's configuration from the variables of Spilo that docker-compose.yml sets, and runs Patroni until the container stops."""
import json, os, shutil, signal, socket, subprocess, sys

env, name = os.environ, socket.gethostname()
address, data = socket.gethostbyname(name), env["PGROOT"]
wanted = json.loads(env["SPILO_CONFIGURATION"])["bootstrap"]["dcs"]
wanted["postgresql"].setdefault("use_slots", True)
config = {
    "scope": env["SCOPE"], "name": name,
    "restapi": {"listen": "0.0.0.0:8008", "connect_address": f"{address}:8008"},
    "etcd3": {"host": env["ETCD3_HOST"]},
    "bootstrap": {"dcs": wanted, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"]},
    "postgresql": {
        "listen": "*:5432", "connect_address": f"{address}:5432", "data_dir": f"{data}/data", "pgpass": "/tmp/pgpass",
        "bin_dir": "/usr/lib/postgresql/17/bin", "parameters": {"unix_socket_directories": "/var/run/postgresql"},
        "authentication": {"superuser": {"username": "postgres", "password": env["PGPASSWORD_SUPERUSER"]},
                           "replication": {"username": "standby", "password": env["PGPASSWORD_STANDBY"]}},
        "pg_hba": ["local all all trust", "host replication standby all scram-sha-256", "host all all all scram-sha-256"],
    },
}
os.makedirs(data, exist_ok=True)
os.makedirs("/var/run/postgresql", exist_ok=True)
subprocess.run(["chown", "-R", "postgres:postgres", "/home/postgres", "/var/run/postgresql"], check=True)
with open("/home/postgres/postgres.yml", "w") as file:
    json.dump(config, file)
shutil.chown("/home/postgres/postgres.yml", "postgres")
running = None
signal.signal(signal.SIGTERM, lambda *_: (running and running.terminate(), setattr(sys, "stopping", True)))
# A Patroni that ends by itself is started again in the same container.
while not getattr(sys, "stopping", False):
    running = subprocess.Popen(["gosu", "postgres", "patroni", "/home/postgres/postgres.yml"])
    running.wait()
