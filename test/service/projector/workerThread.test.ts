import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import type { AppendOutcome } from '../../../src/adapters/embedded/eventStore/commit.js';
import { shareCommits } from '../../../src/adapters/embedded/eventStore/commitLink.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { startApp } from '../../../src/service/app.js';
import { loadConfig } from '../../../src/service/config.js';
import { VERSION } from '../../../src/lib/version.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { type ThreadProjectorOptions, projectOnThread } from '../../../src/service/projector/workerThread.js';
import type { RunningProjector } from '../../../src/service/projector/inProcess.js';
import { leaseState } from '../../../src/runtime/coordination/lease.js';
import { PROJECTIONS } from '../../../src/projections/index.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { failureOf } from '../../support/fixtures/importFile.js';
import { FOR_EVER_MS, until } from '../../support/assertions/until.js';

interface Context {
  dir: string;
  lines: string[];
}

const test = suite<Context>('projector on a worker thread');
/** The log lines about each end. */
const ENDED = "the projector's thread: failed, starting again";

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-beside-'));
  context.lines = [];
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

const loggerOf = (lines: string[]) => pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
const holderIn = async ({ records }: ReadStore): Promise<string | null | undefined> =>
  (await leaseState(records, 'projector'))?.holder;
const said = (lines: readonly string[]): string[] => lines.map((line) => (JSON.parse(line) as { msg: string }).msg);

/** Projects with a program of the test's own in place of the projector's. */
function projectWith(
  { dir, lines }: Context,
  program: readonly string[],
  options: Partial<ThreadProjectorOptions>,
): RunningProjector {
  const script = join(dir, `${randomUUID()}.mjs`);
  writeFileSync(script, program.join('\n'));
  const logger = loggerOf(lines);
  return projectOnThread({
    dataDir: dir,
    tree: { dir, everyMs: 60_000, host: 'localhost', keys: [], witnesses: [] },
    holder: 'h',
    version: VERSION,
    logger,
    followers: followers({ logger }),
    commits: shareCommits(undefined),
    script: pathToFileURL(script),
    ...options,
  });
}

test('keeps read models on a thread with embedded engines, logs with it, and gives up its lease', async ({
  dir,
  lines,
}) => {
  const logger = loggerOf(lines);
  const app = await startApp(loadConfig({ DATA_DIR: dir, PORT: '0', ROLES: 'api,projector' }), logger);
  await until(async () => (await fetch(`${app.url}/readyz`)).status === 200, 'read models');
  await until(() => said(lines).includes('projector: leading'), 'what the thread logs');
  const store = await openEmbeddedReadStore({ dir });
  assert.match((await holderIn(store)) ?? '', new RegExp(`:${process.pid}:[0-9a-f]{8}$`));
  await app.close();
  assert.is(await holderIn(store), null);
  await store.close();
});

test('keeps them in process where projections are given to it, or it answers no requests', async ({ dir, lines }) => {
  const logger = loggerOf(lines);
  for (const [roles, options] of [
    ['api,projector', { projections: PROJECTIONS }],
    ['projector', {}],
  ] as const) {
    const app = await startApp(loadConfig({ DATA_DIR: dir, PORT: '0', ROLES: roles }), logger, options);
    const store = await openEmbeddedReadStore({ dir });
    await until(async () => (await holderIn(store))?.includes(`:${process.pid}:`) === true, 'a projector');
    assert.match((await holderIn(store)) ?? '', /:[0-9a-f]{8}$/);
    await app.close();
    await store.close();
  }
});

test('logs the death of a thread and starts another of the same name, each time later', async (context) => {
  const { dir, lines } = context;
  const program = [
    `import { parentPort, workerData } from 'node:worker_threads';`,
    `import { appendFileSync, readFileSync } from 'node:fs';`,
    `appendFileSync(${JSON.stringify(join(dir, 'threads'))}, '.');`,
    `const nth = readFileSync(${JSON.stringify(join(dir, 'threads'))}).length;`,
    `parentPort.postMessage(JSON.stringify({ msg: nth + ' is ' + workerData.holder + ' of ' + workerData.dataDir + ' at ' + workerData.level }));`,
    `if (nth === 1) throw new Error('out of memory');`,
    `if (nth === 2) process.exit(1);`,
    `parentPort.once('message', (message) => { parentPort.postMessage(JSON.stringify({ msg: message })); parentPort.close(); });`,
  ];
  const projecting = projectWith(context, program, { dataDir: 'd', restartMs: [5, 1_000] });
  await until(() => said(lines).includes('3 is h of d at info'), 'the third thread');
  await projecting.close();
  const ended = ENDED;
  assert.equal(said(lines), [
    '1 is h of d at info',
    ended,
    '2 is h of d at info',
    ended,
    '3 is h of d at info',
    'close',
  ]);
  assert.equal(
    lines
      .filter((line) => line.includes(ended))
      .map((line) => (JSON.parse(line) as { err: { message: string } }).err.message),
    ['out of memory', "the projector's thread ended with 1"],
  );
});

test('has the appends of its thread committed by the process', async (context) => {
  const { lines } = context;
  const program = [
    `import { parentPort } from 'node:worker_threads';`,
    `parentPort.on('message', (message) => {`,
    `  if (message === 'close') process.exit(0);`,
    `  parentPort.postMessage(JSON.stringify({ msg: JSON.stringify(message) }));`,
    `});`,
    `parentPort.postMessage({ id: 7, appends: [[3, 'stream', 'none', []]] });`,
  ];
  const commit: ThreadProjectorOptions['commits']['commit'] = async (appends) =>
    appends.map(([sequence]) => ({ sequence, kind: 'conflict', actual: 5 }));
  const projecting = projectWith(context, program, { commits: { commit } });
  const outcomes = JSON.stringify({ id: 7, outcomes: [{ sequence: 3, kind: 'conflict', actual: 5 }] });
  await until(() => said(lines).includes(outcomes), 'the outcomes');
  await projecting.close();
});

test('commits for threads only while the event store is open', async ({ dir }) => {
  const commits = shareCommits(undefined);
  const [id, at] = [randomUUID(), '2026-01-01T00:00:00.000Z'];
  const append = async () => commits.commit([[4, 'stream', 'none', ['Type', id, at, '{}', '{}']]]);
  assert.is(await append(), 'nowhere');
  const events = await openEmbeddedEventStore({ dir, link: commits });
  const [first] = (await append()) as readonly AppendOutcome[];
  assert.equal([first?.sequence, first?.kind], [4, 'appended']);
  assert.is((await events.read('stream'))[0]?.id, id);
  await events.close();
  assert.is(await append(), 'nowhere');
});

test('projects nothing for a process of another release, whose folder was replaced', async (context) => {
  const { dir, lines } = context;
  const script = new URL('../../../src/service/projector/projectorThread.js', import.meta.url);
  const projecting = projectWith(context, [], { script, version: '99.0.0', restartMs: [FOR_EVER_MS, FOR_EVER_MS] });
  await until(() => said(lines).includes(ENDED), 'the end of the thread');
  assert.match(lines[0] ?? '', /its process is of release 99\.0\.0/);
  await projecting.close();
  assert.equal(
    readdirSync(dir).filter((name) => name.endsWith('.db')),
    [],
  );
});

test("leads again after the death of the projector's thread", async (context) => {
  const { dir, lines } = context;
  const log = await openEmbeddedEventStore({ dir });
  const store = await openEmbeddedReadStore({ dir });
  const died = JSON.stringify(join(dir, 'died'));
  const program = [
    `import { existsSync, writeFileSync } from 'node:fs';`,
    `await import(${JSON.stringify(new URL('../../../src/service/projector/projectorThread.js', import.meta.url).href)});`,
    `if (!existsSync(${died})) setTimeout(() => { writeFileSync(${died}, ''); throw new Error('lost'); }, 300);`,
  ];
  const projecting = projectWith(context, program, { restartMs: [10, 10] });
  const leading = (): readonly { readonly fence: number }[] =>
    lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'projector: leading');
  await until(() => leading().length === 1, 'the first');
  await until(() => said(lines).includes(ENDED), 'its end');
  await until(() => leading().length === 2, 'the second');
  assert.equal(
    leading().map(({ fence }) => fence),
    [1, 2],
  );
  await projecting.close();
  await store.close();
  await log.close();
});

test('fails to close when the thread ends badly, or not at all', async (context) => {
  const ending = async (name: string, work: string): Promise<Error> => {
    const program = [
      `import { parentPort } from 'node:worker_threads';`,
      `parentPort.once('message', () => { ${work} });`,
      `parentPort.postMessage('{"msg":"${name}"}');`,
    ];
    const projecting = projectWith(context, program, { endMs: 500 });
    await until(() => said(context.lines).includes(name), 'its beginning');
    return failureOf(projecting.close());
  };
  const thrown = await ending('throws', `throw new Error('no disk')`);
  assert.is((thrown.cause as Error).message, 'no disk');
  assert.match((await ending('exits', 'process.exit(3)')).message, /ended with 3/);
  assert.match((await ending('hangs', 'for (;;);')).message, /did not end within 500 ms/);
});

test('starts no thread when closed between two', async (context) => {
  const { lines } = context;
  const projecting = projectWith(context, [`throw new Error('out of memory')`], { restartMs: [100, 100] });
  await until(() => lines.length === 1, 'its end');
  await projecting.close();
  await sleep(300);
  assert.is(lines.length, 1);
});

test.run();
