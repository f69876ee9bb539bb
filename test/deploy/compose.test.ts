import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EventStoreDBClient } from '@eventstore/db-client';
import { MongoClient } from 'mongodb';
import { parse } from 'yaml';
import { ALL_SETTINGS, loadConfig, ROLES } from '../../src/service/config.js';
import { natsMissing } from '../support/engines/natsServer.js';
import { freePort } from '../support/engines/serverProcess.js';
import { eventually, until } from '../support/assertions/until.js';

/** The parts of a compose file that these tests check. */
interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly networks: Readonly<Record<string, unknown>>;
}

interface ComposeService {
  readonly image: string;
  readonly build?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly ports?: readonly string[];
  readonly mem_limit?: string;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly networks?: readonly string[];
  readonly network_mode?: string;
  readonly logging?: { readonly driver: string; readonly options: Readonly<Record<string, string>> };
  readonly env_file?: readonly { readonly path: string; readonly required: boolean }[];
}

const FILES = ['docker-compose.yml', 'docker-compose.cluster.yml'] as const;
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('deploy');

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const compose = (file: string): Compose =>
  parse(textOf(file), { merge: true, strict: true, uniqueKeys: true }) as Compose;
const ours = ({ services }: Compose): [string, ComposeService][] =>
  Object.entries(services).filter(([, { environment }]) => environment?.['ROLES'] !== undefined);
const engines = ({ services }: Compose): [string, ComposeService][] =>
  Object.entries(services).filter(([, { build }]) => build === undefined);

/** A value as compose passes it on: defaults for unset variables of `.env`, and `$$` as `$`. */
function interpolated(value: string, env: Readonly<Record<string, string>> = {}): string {
  return value.replaceAll(
    /\$\$|\$\{(\w+)(?::-([^}]*))?\}/g,
    (whole, name: string | undefined, fallback: string | undefined) =>
      whole === '$$' ? '$' : (env[name!] ?? fallback ?? ''),
  );
}

function environmentOf(service: ComposeService, env: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(service.environment ?? {}).map(([name, value]) => [name, interpolated(value, env)]),
  );
}

const KNOWN_SETTINGS: ReadonlySet<string> = new Set(ALL_SETTINGS.map(({ name }) => name));

/**
 * Options of EventStoreDB 24.10 as environment variables: those of `ClusterVNodeOptions` in its source, 24.10.14. One
 * it does not know ends it at its start. That its manual calls one EVENTSTORE_LOG_RETENTION_COUNT
 * (https://docs.kurrent.io/server/v24.10/diagnostics/logs.html) is a mistake of the manual.
 */
const EVENTSTORE_OPTIONS = [
  'CHUNKS_CACHE_SIZE',
  'CLUSTER_SIZE',
  'DISCOVER_VIA_DNS',
  'GOSSIP_SEED',
  'INSECURE',
  'LOG_FILE_RETENTION_COUNT',
  'LOG_FILE_SIZE',
  'MAX_MEM_TABLE_SIZE',
  'NODE_HOST_ADVERTISE_AS',
  'NODE_PORT',
  'REPLICATION_HOST_ADVERTISE_AS',
  'REPLICATION_PORT',
  'RUN_PROJECTIONS',
  'STREAM_INFO_CACHE_CAPACITY',
  'TELEMETRY_OPTOUT',
].map((name) => `EVENTSTORE_${name}`);
/** Variables of each engine; GOMEMLIMIT: https://pkg.go.dev/runtime. */
const ENGINE_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  eventstore: EVENTSTORE_OPTIONS,
  mongodb: ['HOME'],
  nats: ['GOMEMLIMIT'],
};
/** Node's own, beside the service's settings: https://nodejs.org/api/cli.html. */
const NODE_SETTINGS = ['NODE_OPTIONS'];
/** The folder of each image that must outlive its container. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  eventstore: ['/var/lib/eventstore', '/var/log/eventstore'],
  mongodb: ['/data/configdb', '/data/db'],
  nats: [],
};

for (const file of FILES) {
  test(`starts every role once, with settings that the service takes (${file})`, () => {
    const parsed = compose(file);
    assert.equal(
      ours(parsed)
        .map(([, { environment }]) => environment!['ROLES']!)
        .toSorted(),
      [...ROLES].toSorted(),
    );
    for (const [name, service] of ours(parsed)) {
      const env = environmentOf(service);
      for (const setting of Object.keys(env))
        assert.ok(KNOWN_SETTINGS.has(setting) || NODE_SETTINGS.includes(setting), `${name}: ${setting} is no setting`);
      const config = loadConfig({
        ...env,
        TOKEN_KEY: 'k'.repeat(43),
        HASH_KEY: 'h'.repeat(43),
        MASTER_KEY: 'm'.repeat(43),
        SEAL_KEY: 's'.repeat(43),
      });
      assert.equal([config.host, config.metricsPort, [...config.roles]], ['0.0.0.0', 9090, [name]]);
      assert.ok(
        config.eventStoreUrl !== undefined &&
          config.mongodbUrl !== undefined &&
          config.natsUrl !== undefined &&
          config.keysUrl !== undefined,
      );
      assert.equal([config.payments, config.notifications], ['simulated', 'simulated']);
      assert.equal(service.env_file, [{ path: '.env', required: false }]);
    }
    for (const [name, { ports }] of engines(parsed))
      assert.is(ports, undefined, `${name} is reached from within alone`);
    const published = ours(parsed).flatMap(([, { ports = [] }]) => ports.map((port) => interpolated(port)));
    const [api, ...metrics] = published;
    assert.is(api, '127.0.0.1:3000:3000');
    const { scrape_configs } = parse(textOf('deploy/prometheus.compose.yml')) as {
      scrape_configs: { static_configs: { targets: string[] }[] }[];
    };
    assert.equal(
      metrics,
      scrape_configs[0]!.static_configs[0]!.targets.map((target) => `${target}:9090`),
      'every process is scraped',
    );
  });

  test(`takes from every container what it can do without (${file})`, () => {
    const parsed = compose(file);
    for (const [name, service] of Object.entries(parsed.services)) {
      assert.equal([service.cap_drop, service.security_opt], [['ALL'], ['no-new-privileges:true']], name);
      assert.is(service.read_only, name.startsWith('eventstore') ? undefined : true, name);
    }
    assert.equal(parsed.networks, { engines: { internal: true } });
    for (const [name, { networks }] of engines(parsed)) assert.equal(networks, ['engines'], name);
    for (const [name, { networks }] of ours(parsed)) assert.equal(networks, ['default', 'engines'], name);
    assert.is(parsed.services['keys']?.network_mode, 'none');
  });

  test(`gives the addresses of its engines, as their clients read them (${file})`, async () => {
    const parsed = compose(file);
    const names = (engine: string): string[] =>
      engines(parsed)
        .map(([name]) => name)
        .filter((name) => name.startsWith(engine));
    const nodes = file === 'docker-compose.yml' ? 1 : 3;
    for (const [, service] of ours(parsed)) {
      const { EVENTSTORE_URL, MONGODB_URL, NATS_URL } = environmentOf(service);
      assert.equal(
        EVENTSTORE_URL,
        `esdb://${names('eventstore')
          .map((host) => `${host}:2113`)
          .join(',')}?tls=false`,
      );
      await EventStoreDBClient.connectionString(EVENTSTORE_URL!).dispose();
      const mongo = new MongoClient(MONGODB_URL!);
      assert.equal(
        mongo.options.hosts.map(({ host }) => host),
        names('mongodb'),
      );
      assert.equal([mongo.options.dbName, mongo.options.replicaSet], ['gift', 'gift']);
      await mongo.close();
      assert.equal(
        NATS_URL,
        names('nats')
          .map((host) => `nats://${host}:4222`)
          .join(','),
      );
      for (const engine of ['eventstore', 'mongodb', 'nats']) assert.is(names(engine).length, nodes);
      const waited = Object.entries(service.depends_on ?? {}).map(([name, { condition }]) => `${name} ${condition}`);
      assert.equal(
        waited.toSorted(),
        [
          'keys service_completed_successfully',
          ...engines(parsed).map(([name]) => `${name} service_healthy`),
        ].toSorted(),
      );
    }
  });

  test(`has engines of exact versions, with health checks and data of their own (${file})`, () => {
    const parsed = compose(file);
    const volumes: string[] = [];
    for (const [name, service] of engines(parsed)) {
      const engine = name.replace(/\d$/, '');
      assert.match(service.image, /:\d+\.\d+\.\d+(-\w+)?$/, name);
      assert.ok(service.healthcheck!.test.length > 1, name);
      const mounted = (service.volumes ?? []).map((volume) => volume.split(':') as [string, string]);
      assert.equal(mounted.map(([, place]) => place).toSorted(), KEPT[engine], name);
      for (const [volume] of mounted) {
        assert.ok(volume in parsed.volumes, volume);
        volumes.push(volume);
      }
      for (const setting of Object.keys(service.environment ?? {}))
        assert.ok(ENGINE_OPTIONS[engine]!.includes(setting), `${name}: ${setting}`);
    }
    assert.is(new Set(volumes).size, volumes.length, 'no volume is of two engines');
    assert.equal([...volumes, 'keys'].toSorted(), Object.keys(parsed.volumes).toSorted());
  });
}

const MB = 1_048_576;
/**
 * Of a container's limit, .NET takes so much for its heap when nothing else is said:
 * https://learn.microsoft.com/dotnet/core/runtime-config/garbage-collector.
 */
const DOTNET_HEAP = 0.75;

/**
 * Bytes that compose reads in `1g`, `1536m`
 * (https://docs.docker.com/reference/compose-file/extension/#specifying-byte-values).
 */
function bytesOf(value: string | undefined): number {
  const [, number, unit] = /^(\d+)(m|g)$/.exec(value ?? '') ?? [];
  if (number === undefined) throw new Error(`no size: ${value}`);
  return Number(number) * (unit === 'g' ? 1_024 : 1) * MB;
}

for (const file of FILES) {
  test(`limits memory and log of every container, and fits its caches into them (${file})`, () => {
    const parsed = compose(file);
    for (const [name, { mem_limit, logging }] of Object.entries(parsed.services)) {
      assert.ok(bytesOf(mem_limit) >= 256 * MB, name);
      assert.equal(logging, { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } }, name);
    }
    for (const [name, service] of ours(parsed)) {
      const heap = Number(/^--max-old-space-size=(\d+)$/.exec(service.environment!['NODE_OPTIONS']!)?.[1]);
      // The rest holds the young generation, buffers, TLS and argon2's 19 MB a login.
      assert.ok(heap >= 256 && heap * MB <= 0.7 * bytesOf(service.mem_limit), `${name}: ${heap} MB`);
    }
    for (const [name, { mem_limit, environment, command }] of engines(parsed)) {
      const limit = bytesOf(mem_limit);
      if (name.startsWith('eventstore')) {
        const of = (option: string): number => Number(environment![`EVENTSTORE_${option}`]);
        assert.ok(of('CHUNKS_CACHE_SIZE') + DOTNET_HEAP * limit <= limit, `${name}: caches beside the heap`);
        // Two chunks with their headers and footers.
        assert.is(of('CHUNKS_CACHE_SIZE'), 2 * (256 * MB + 2 * 128));
        assert.ok(of('STREAM_INFO_CACHE_CAPACITY') >= 100_000 && of('MAX_MEM_TABLE_SIZE') >= 100_000, name);
        assert.ok(of('LOG_FILE_SIZE') * of('LOG_FILE_RETENTION_COUNT') <= 1_024 * MB, `${name}: its own logs`);
      } else if (name.startsWith('mongodb')) {
        const cache = Number(command![command!.indexOf('--wiredTigerCacheSizeGB') + 1]) * 1_024 * MB;
        // mongod takes no less than 0.25.
        assert.ok(cache >= 256 * MB && cache <= limit / 2, `${name}: ${cache}`);
      } else {
        const [, goal] = /^(\d+)MiB$/.exec(environment!['GOMEMLIMIT']!) ?? [];
        assert.ok(Number(goal) * MB < 0.9 * limit, `${name}: ${goal}`);
      }
    }
  });
}

test("names what .env can't change where its settings are listed", () => {
  for (const file of FILES) {
    const fixed = ours(compose(file)).flatMap(([, { environment }]) =>
      Object.entries(environment!)
        .filter(([, value]) => !value.includes('${'))
        .map(([name]) => name),
    );
    assert.ok(fixed.length > 0);
    for (const text of ['.env.example', 'docs/deployment.md']) {
      const listed =
        /but for those that the compose\s(?:# )?files give their processes themselves:([^.;]*)/.exec(
          textOf(text).replaceAll(/`/g, ''),
        )?.[1] ?? '';
      for (const name of new Set(fixed)) assert.match(listed, new RegExp(`\\b${name}\\b`), `${text}, ${file}`);
    }
  }
});

test('has each EventStoreDB of the cluster name itself and the others', () => {
  const { services } = compose('docker-compose.cluster.yml');
  for (const n of [1, 2, 3]) {
    const own = services[`eventstore${n}`]!.environment!;
    assert.equal(
      [
        own['EVENTSTORE_NODE_HOST_ADVERTISE_AS'],
        own['EVENTSTORE_REPLICATION_HOST_ADVERTISE_AS'],
        own['EVENTSTORE_CLUSTER_SIZE'],
      ],
      [`eventstore${n}`, `eventstore${n}`, '3'],
    );
    assert.is(
      own['EVENTSTORE_GOSSIP_SEED'],
      [1, 2, 3]
        .filter((other) => other !== n)
        .map((other) => `eventstore${other}:2113`)
        .join(','),
    );
    assert.ok(services[`nats${n}`]!.command!.includes('nats://nats1:6222,nats://nats2:6222,nats://nats3:6222'));
  }
});

/**
 * Runs a MongoDB health check's mongosh script, on a replica set that is not initiated, and on a member with a state.
 */
function checked(script: string, begun: boolean): { initiated: object[]; code: number | undefined } {
  const initiated: { members: { host: string }[] }[] = [];
  let code: number | undefined;
  let running = begun;
  const rs = {
    status() {
      if (!running) throw new Error('NotYetInitialized');
      return { members: [{ stateStr: 'SECONDARY' }, { stateStr: 'PRIMARY' }] };
    },
    initiate(config: { members: { host: string }[] }) {
      initiated.push(config);
      running = true;
    },
  };
  const db = { hello: () => ({ isWritablePrimary: running }) };
  // eslint-disable-next-line typescript/no-implied-eval -- the text under test is a program
  const run = new Function('rs', 'db', 'quit', interpolated(script)) as (...args: unknown[]) => void;
  run(rs, db, (value: number) => {
    code = value;
  });
  return { initiated, code };
}

test("initiates MongoDB's replica set once, of all its members, by its health check", () => {
  for (const [file, name, hosts] of [
    ['docker-compose.yml', 'mongodb', ['mongodb:27017']],
    ['docker-compose.cluster.yml', 'mongodb1', ['mongodb1:27017', 'mongodb2:27017', 'mongodb3:27017']],
  ] as const) {
    const { command, healthcheck } = compose(file).services[name]!;
    const script = healthcheck!.test.at(-1)!;
    const first = checked(script, false);
    assert.equal(
      first.initiated.map((config) => [
        (config as { _id: string })._id,
        (config as { members: { host: string }[] }).members.map(({ host }) => host),
      ]),
      [['gift', [...hosts]]],
    );
    assert.is(first.code, 0);
    assert.equal(checked(script, true), { initiated: [], code: 0 });
    assert.is(command![command!.indexOf('--replSet') + 1], 'gift');
  }
  assert.throws(
    () => checked(compose('docker-compose.cluster.yml').services['mongodb2']!.healthcheck!.test.at(-1)!, false),
    /NotYetInitialized/,
  );
});

test('keeps acknowledged writes of MongoDB, journaled by a majority, when its primary fails', () => {
  for (const [file, name, members] of [
    ['docker-compose.yml', 'mongodb', 1],
    ['docker-compose.cluster.yml', 'mongodb1', 3],
  ] as const) {
    const { services } = compose(file);
    const [config] = checked(services[name]!.healthcheck!.test.at(-1)!, false).initiated as {
      members: Record<string, unknown>[];
    }[];
    // writeConcernMajorityJournalDefault defaults to true, and a member is neither an arbiter nor without a vote:
    // https://www.mongodb.com/docs/manual/reference/replica-configuration/.
    assert.equal(Object.keys(config!).toSorted(), ['_id', 'members']);
    assert.equal(
      config!.members.map((member) => Object.keys(member).toSorted()),
      Array.from({ length: members }, () => ['_id', 'host']),
    );
    for (const [node, { command }] of Object.entries(services).filter(([other]) => other.startsWith('mongodb'))) {
      // Nothing that turns the journal off, or takes a storage engine without one.
      assert.equal(command, ['mongod', '--replSet', 'gift', '--bind_ip_all', '--wiredTigerCacheSizeGB', '0.75'], node);
    }
  }
});

/** The answer at a health check's address, once there is one. */
async function healthy(url: string): Promise<number> {
  return eventually(async () => (await fetch(url).catch(() => undefined))?.status, `an answer at ${url}`);
}

const noNats = natsMissing({ own: true });
if (noNats !== undefined) console.log(`skipped: NATS starts as the compose files tell it to: ${noNats}`);
for (const file of noNats === undefined ? FILES : []) {
  test(`starts NATS so that it finds the others and answers its health check (${file})`, async () => {
    const nodes = engines(compose(file)).filter(([name]) => name.startsWith('nats'));
    const ports = await Promise.all(
      nodes.map(async () => ({ client: await freePort(), cluster: await freePort(), http: await freePort() })),
    );
    const children: ChildProcess[] = [];
    try {
      for (const [index, [, { command }]] of nodes.entries()) {
        const { client, cluster, http } = ports[index]!;
        // On one machine the nodes differ by their ports, not by their hosts.
        const args = command!.map((word) =>
          word
            .replace('0.0.0.0:6222', `127.0.0.1:${cluster}`)
            .replaceAll(/nats(\d):6222/g, (_, n: string) => `127.0.0.1:${ports[Number(n) - 1]!.cluster}`)
            .replace(/^8222$/, String(http)),
        );
        children.push(spawn('nats-server', ['-a', '127.0.0.1', '-p', String(client), ...args], { stdio: 'ignore' }));
      }
      for (const [index, [name, { healthcheck }]] of nodes.entries()) {
        const url = healthcheck!.test.at(-1)!.replace(':8222', `:${ports[index]!.http}`);
        assert.is(await healthy(url), 200, name);
        const others = async (): Promise<number> =>
          ((await (await fetch(url.replace('/healthz', '/routez'))).json()) as { num_routes: number }).num_routes;
        await until(async () => (await others()) >= nodes.length - 1, `${name} to find the others`);
      }
    } finally {
      for (const child of children) child.kill('SIGKILL');
    }
  });
}

for (const file of FILES) {
  test(`makes keys once for every process, unless they are set (${file})`, () => {
    const dir = mkdtempSync(join(tmpdir(), 'compose-'));
    try {
      const { services } = compose(file);
      const here = (text: string): string => interpolated(text).replaceAll('/data', dir).replaceAll('/app/', ROOT);
      const [node, ...args] = services['keys']!.command!.map(here);
      assert.is(node, 'node');
      execFileSync(process.execPath, args);
      const kept = ['token.key', 'hash.key', 'master.key', 'seal.key'].map((name) =>
        readFileSync(join(dir, name), 'utf8'),
      );
      execFileSync(process.execPath, args);
      assert.equal(
        ['token.key', 'hash.key', 'master.key', 'seal.key'].map((name) => readFileSync(join(dir, name), 'utf8')),
        kept,
      );
      const shown = (env: Record<string, string>): string[] => {
        const [shell, ...rest] = services['worker']!.entrypoint!.map(here);
        return execFileSync(shell!, [...rest, 'printenv', 'TOKEN_KEY', 'HASH_KEY', 'MASTER_KEY', 'SEAL_KEY'], {
          env: { PATH: process.env['PATH'], ...env },
          encoding: 'utf8',
        })
          .trim()
          .split('\n');
      };
      assert.equal(
        shown({}),
        kept.map((key) => key.trim()),
      );
      assert.equal(shown({ TOKEN_KEY: 'one two', HASH_KEY: '' }), [
        'one two',
        ...kept.slice(1).map((key) => key.trim()),
      ]);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
}

test('finds the keys of the volume for a command that enters a container, unless they are set', () => {
  const dir = mkdtempSync(join(tmpdir(), 'compose-'));
  const names = ['TOKEN_KEY', 'HASH_KEY', 'MASTER_KEY', 'SEAL_KEY'];
  try {
    for (const name of names) writeFileSync(join(dir, name.toLowerCase().replace('_', '.')), `made ${name}\n`);
    writeFileSync(join(dir, 'node'), `#!/bin/sh\nprintenv ${names.join(' ')}\necho "$@"\n`, { mode: 0o755 });
    const script = textOf('deploy/gift-in-container').replaceAll('/data', dir);
    const shown = (env: Record<string, string>): string[] =>
      execFileSync('sh', ['-c', script, 'gift', 'diagnose'], {
        env: { PATH: `${dir}:${process.env['PATH'] ?? ''}`, ...env },
        encoding: 'utf8',
      })
        .trim()
        .split('\n');
    const called = '/app/dist/service/gift.js diagnose';
    const [token, ...others] = names.map((name) => `made ${name}`);
    assert.equal(shown({ EVENTSTORE_URL: 'esdb://eventstore:2113' }), [token, ...others, called]);
    assert.equal(shown({ EVENTSTORE_URL: 'esdb://eventstore:2113', TOKEN_KEY: 'one two' }), [
      'one two',
      ...others,
      called,
    ]);
    // On embedded engines the key files are found in DATA_DIR.
    assert.equal(shown({}), [called]);
  } finally {
    rmSync(dir, { recursive: true });
  }
  assert.match(textOf('Dockerfile'), /^COPY deploy\/gift-in-container \/usr\/local\/bin\/gift$/m);
});

test('builds an image of exact versions and existing files, without root', () => {
  const lines = textOf('Dockerfile').replaceAll('\\\n', ' ').split('\n');
  const of = (word: string): string[] =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  const { optionalDependencies: tested } = JSON.parse(textOf('test/nodes/package.json')) as {
    optionalDependencies: Readonly<Record<string, string>>;
  };
  const versions = new Set([
    ...Object.values(tested),
    ...of('FROM').map((image) => /^node:(\d+\.\d+\.\d+)-bookworm(-slim)?( AS \w+)?$/.exec(image)?.[1] ?? image),
  ]);
  assert.is(versions.size, 1, `the image runs the Node that is tested: ${[...versions].join(', ')}`);
  assert.ok(of('ENV').join(' ').includes('METRICS_PORT=9090') && of('EXPOSE').join(' ') === '3000 9090');
  assert.match(of('FROM').at(-1)!, /-slim$/);
  assert.ok(
    lines.some((line) => line.includes('npm ci ')) && lines.some((line) => line.includes('npm prune --omit=dev')),
  );
  assert.equal(of('USER'), ['node']);
  assert.ok(lines.indexOf('USER node') < lines.findIndex((line) => line.startsWith('CMD')));
  const allowed = new Set(
    textOf('.dockerignore')
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1)),
  );
  assert.is(textOf('.dockerignore').split('\n')[0], '*');
  const copied = of('COPY')
    .filter((line) => !line.startsWith('--from'))
    .flatMap((line) => line.split(' ').slice(0, -1));
  assert.equal(copied.toSorted(), [...allowed].toSorted(), 'what is copied is what the context holds');
  for (const name of copied) assert.ok(existsSync(join(ROOT, name)), name);
});

test("distinguishes a ready service from an absent or unready one by the image's health check", async () => {
  const check = /HEALTHCHECK .*?CMD (\[.*\])/.exec(textOf('Dockerfile').replaceAll('\\\n', ' '))![1]!;
  const [node, ...args] = JSON.parse(check) as string[];
  assert.is(node, 'node');
  let status = 200;
  const server = createServer((request, response) =>
    response.writeHead(request.url === '/readyz' ? status : 404).end(),
  ).listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  const port = String((server.address() as AddressInfo).port);
  const code = async (env: Record<string, string>): Promise<number> =>
    new Promise((resolve) => {
      execFile(process.execPath, args, { env }, (error) => resolve(error === null ? 0 : Number(error.code)));
    });
  assert.is(await code({ METRICS_PORT: port, PORT: '1' }), 0);
  assert.is(await code({ PORT: port }), 0);
  status = 503;
  assert.is(await code({ PORT: port }), 1);
  server.close();
  server.closeAllConnections();
  assert.is(await code({ METRICS_PORT: port }), 1);
});

test('names only settings in .env.example', () => {
  const names = [...textOf('.env.example').matchAll(/^#? ?([A-Z][A-Z_]+)=/gm)].map(([, name]) => name!);
  assert.ok(names.length > 5);
  for (const name of names) assert.ok(KNOWN_SETTINGS.has(name) || name === 'LISTEN', name);
});

test.run();
