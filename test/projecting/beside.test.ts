import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config.js';
import { projectBeside } from '../../src/projecting/beside.js';
import { PROJECTIONS } from '../../src/readModels.js';
import { until } from '../support/until.js';

const test = suite<{ dir: string; lines: string[] }>('Projecting beside');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-beside-'));
  context.lines = [];
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

const loggerOf = (lines: string[]) => pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
const said = (lines: readonly string[]): string[] => lines.map((line) => (JSON.parse(line) as { msg: string }).msg);

test('a service of embedded engines keeps its read models on a thread, which logs with it, and gives its lease up at the end', async ({ dir, lines }) => {
  const logger = loggerOf(lines);
  const app = await startApp(loadConfig({ DATA_DIR: dir, PORT: '0', ROLES: 'api,projector' }), logger);
  await until(async () => (await fetch(`${app.url}/readyz`)).status === 200, 'read models');
  await until(() => said(lines).includes('projector: leading'), 'what the thread logs');
  const store = await openEmbeddedReadStore({ dir });
  const holder = async (): Promise<string | null | undefined> => (await store.records.get<{ holder: string | null }>('lease/projector'))?.value.holder;
  assert.match((await holder()) ?? '', new RegExp(`:${process.pid}:[0-9a-f]{8}/1$`), 'the first thread of this process');
  await app.close();
  assert.is(await holder(), null);
  await store.close();
});

test('it keeps them on the thread that runs it where projections are handed to it, and where it answers no requests', async ({ dir, lines }) => {
  const logger = loggerOf(lines);
  for (const [roles, options] of [['api,projector', { projections: PROJECTIONS }], ['projector', {}]] as const) {
    const app = await startApp(loadConfig({ DATA_DIR: dir, PORT: '0', ROLES: roles }), logger, options);
    const store = await openEmbeddedReadStore({ dir });
    const holder = async (): Promise<string | null | undefined> => (await store.records.get<{ holder: string | null }>('lease/projector'))?.value.holder;
    await until(async () => (await holder())?.includes(`:${process.pid}:`) === true, 'a projector');
    assert.match((await holder()) ?? '', /:[0-9a-f]{8}$/);
    await app.close();
    await store.close();
  }
});

test('a thread that dies is told of and followed by another, under another name; its lines go where the logger writes', async ({ dir, lines }) => {
  const script = join(dir, 'thread.mjs');
  writeFileSync(script, [
    `import { parentPort, workerData } from 'node:worker_threads';`,
    `parentPort.postMessage(JSON.stringify({ msg: workerData.holder + ' of ' + workerData.dataDir + ' at ' + workerData.level }));`,
    `if (workerData.holder.endsWith('/1')) throw new Error('out of memory');`,
    `if (workerData.holder.endsWith('/2')) process.exit(1);`,
    `parentPort.once('message', (message) => { parentPort.postMessage(JSON.stringify({ msg: message })); parentPort.close(); });`,
  ].join('\n'));
  const projecting = projectBeside({ dataDir: 'd', holder: 'h', version: '1', logger: loggerOf(lines), script: pathToFileURL(script), restartMs: 5 });
  await until(() => said(lines).includes('h/3 of d at info'), 'the third thread');
  await projecting.close();
  const ended = 'projector: its thread ended, another is started';
  assert.equal(said(lines), ['h/1 of d at info', ended, 'h/2 of d at info', ended, 'h/3 of d at info', 'close']);
  assert.equal(lines.filter((line) => line.includes(ended)).map((line) => (JSON.parse(line) as { err?: { message: string } }).err?.message), ['out of memory', undefined]);
});

test('closed between two threads it starts none', async ({ dir, lines }) => {
  const script = join(dir, 'thread.mjs');
  writeFileSync(script, `throw new Error('out of memory')`);
  const projecting = projectBeside({ dataDir: dir, holder: 'h', version: '1', logger: loggerOf(lines), script: pathToFileURL(script), restartMs: 100 });
  await until(() => lines.length === 1, 'its end');
  await projecting.close();
  await sleep(300);
  assert.is(lines.length, 1);
});

test.run();
