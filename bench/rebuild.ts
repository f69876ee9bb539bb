/**
 * Rebuilding the gifts read model from 1,000,000 events, and verifying it: alone, beside an API that answers 500
 * requests a second, and with a tenth of the events. Held against reading the log and writing the same documents in
 * batches, each by itself, in the same run. `--gifts=N` takes a log of so many gifts (3.66 events each), `--seconds=N`
 * the time that the API is measured for.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openEmbeddedReadStore } from '../src/adapters/embedded/readStore/readStore.js';
import { yieldProcessor } from '../src/cli/priority.js';
import { giftsProjection } from '../src/projections/gifts.js';
import { collectionOf } from '../src/runtime/readmodels/projection.js';
import { sameVersion } from '../src/runtime/readmodels/buildNumbers.js';
import { type CommandRun, startCommand } from './support/command.js';
import { type BenchData, historyOf, lookUpOf, redemptionOf, scratch, tills, tokensOf } from './support/data.js';
import { type LoadResult, load } from './support/load.js';
import { rawRead, sameDocuments, type Took } from './support/raw.js';
import { median, table, verdict } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    gifts: { type: 'string', default: '275000' },
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
    raw: { type: 'string' },
  },
});
const GIFTS = Number(values.gifts);
const SECONDS = Number(values.seconds);
const ROUNDS = Number(values.rounds);
/** Of 500 requests a second so many are redemptions. */
const RATE = { lookUps: 450, redemptions: 50 };
/** What a swap, and the pause before the next look, may take until the load is back to what it was, in ms. */
const SETTLE_MS = 3_000;

/** A copy of a history, its read models built, that may be changed. The page cache holds it. */
async function copyOf(data: BenchData): Promise<string> {
  // Those of an earlier version would be built while it is measured.
  if (!(await isCurrent(data.dir)))
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(data.dir, `read.db${suffix}`), { force: true });
  // Once, so that the read models stand there.
  await (await startService(data.dir)).stop();
  const dir = scratch('rebuild');
  cpSync(data.dir, dir, { recursive: true });
  return dir;
}

async function isCurrent(dir: string): Promise<boolean> {
  const store = await openEmbeddedReadStore({ dir });
  const active = await store.active('gifts');
  await store.close();
  return active !== undefined && sameVersion(active, giftsProjection.version);
}

const command = async (dir: string, args: readonly string[]): Promise<CommandRun> =>
  startCommand(dir, ['projections', ...args, '--json']).ended;
/** What the command itself says it took: starting Node is not what is measured. */
const secondsOf = ({ lines }: CommandRun): number => Number(lines.at(-1)?.['seconds']);

/** Reading and writing by themselves, in a process that has the same small share of the machine as a command. */
interface Raw {
  readonly read: Took;
  readonly written: Took;
}

async function rawOf(folder: string): Promise<Raw> {
  yieldProcessor();
  const store = await openEmbeddedReadStore({ dir: folder });
  const version = await store.active('gifts');
  await store.close();
  if (version === undefined) throw new Error('gifts was never built');
  return {
    read: await rawRead(folder),
    written: await sameDocuments(folder, [{ ...collectionOf(giftsProjection), version }]),
  };
}

if (values.raw !== undefined) {
  process.stdout.write(JSON.stringify(await rawOf(values.raw)));
  process.exit();
}

const few = await copyOf(historyOf(Math.round(GIFTS / 10)));
const fewRun = await command(few, ['rebuild', 'gifts']);
const fewVerify = await command(few, ['verify', 'gifts']);
rmSync(few, { recursive: true });

const data = historyOf(GIFTS);
const dir = await copyOf(data);
try {
  const rounds = [];
  for (let n = 0; n < ROUNDS; n++) {
    const { read, written } = JSON.parse(
      execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--raw', dir], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    ) as Raw;
    const rebuild = await command(dir, ['rebuild', 'gifts']);
    const verify = await command(dir, ['verify', 'gifts']);
    rounds.push({
      read,
      rebuild,
      verify,
      written,
      ratio: Math.max(read.seconds, written.seconds) / secondsOf(rebuild),
      verifyRatio: secondsOf(rebuild) / secondsOf(verify),
    });
  }
  const documents = rounds[0]?.written.count ?? 0;
  const seconds = {
    read: median(rounds.map(({ read }) => read.seconds)),
    written: median(rounds.map(({ written }) => written.seconds)),
    rebuild: median(rounds.map(({ rebuild }) => secondsOf(rebuild))),
    verify: median(rounds.map(({ verify }) => secondsOf(verify))),
  };
  const peak = {
    rebuild: Math.max(...rounds.map(({ rebuild }) => rebuild.peakMb)),
    verify: Math.max(...rounds.map(({ verify }) => verify.peakMb)),
  };
  const beside = await withApi();

  console.log(
    `${data.events.toLocaleString('en')} events, ${documents.toLocaleString('en')} gifts; the median of ${ROUNDS} rounds`,
  );
  table([
    { step: 'reading the log raw', s: seconds.read, 'events/s': data.events / seconds.read },
    { step: 'writing the same documents in batches', s: seconds.written, 'events/s': data.events / seconds.written },
    { step: 'rebuilding gifts', s: seconds.rebuild, 'events/s': data.events / seconds.rebuild },
    { step: 'verifying gifts', s: seconds.verify, 'events/s': data.events / seconds.verify },
    { step: 'rebuilding gifts beside 500 requests/s', s: data.events / beside.perSecond, 'events/s': beside.perSecond },
  ]);
  table([
    { 'at 500 requests/s': 'look-ups alone', ...latencies(beside.alone.lookUps) },
    { 'at 500 requests/s': 'look-ups beside a rebuild', ...latencies(beside.during.lookUps) },
    { 'at 500 requests/s': 'redemptions alone', ...latencies(beside.alone.redemptions) },
    { 'at 500 requests/s': 'redemptions beside a rebuild', ...latencies(beside.during.redemptions) },
  ]);
  verdict('rebuild, to the slower of reading and writing', median(rounds.map(({ ratio }) => ratio)), { atLeast: 0.5 });
  verdict('verification, to rebuild', median(rounds.map(({ verifyRatio }) => verifyRatio)), { atLeast: 0.5 });
  for (const kind of ['lookUps', 'redemptions'] as const) {
    const most = Math.max(10, 2 * beside.alone[kind].p99);
    verdict(
      `${kind === 'lookUps' ? 'look-ups' : 'redemptions'} beside a rebuild, 99th percentile`,
      beside.during[kind].p99,
      { atMost: Math.round(most * 10) / 10 },
      ' ms',
    );
  }
  verdict(
    `memory of a rebuild, to that of a tenth of the events (${Math.round(peak.rebuild)} and ${Math.round(fewRun.peakMb)} MB)`,
    peak.rebuild / fewRun.peakMb,
    { atMost: 1.5 },
  );
  verdict(
    `memory of a verification, likewise (${Math.round(peak.verify)} and ${Math.round(fewVerify.peakMb)} MB)`,
    peak.verify / fewVerify.peakMb,
    { atMost: 1.5 },
  );
} finally {
  rmSync(dir, { recursive: true });
}

function latencies({ perSecond, p50, p99, max }: LoadResult): Record<string, number> {
  return { 'answered/s': perSecond, 'p50 ms': p50, 'p99 ms': p99, 'most ms': max };
}

interface Answered {
  readonly lookUps: LoadResult;
  readonly redemptions: LoadResult;
}

/** The same load twice: by itself, and while a rebuild runs that is broken off at the end. */
async function withApi(): Promise<{ alone: Answered; during: Answered; perSecond: number }> {
  const service = await startService(dir);
  try {
    const tokens = await tokensOf(service.url, tills);
    const lookUps = join(dir, 'look-ups.jsonl');
    const redemptions = join(dir, 'redemptions.jsonl');
    writeFileSync(lookUps, data.gifts.map((gift) => JSON.stringify(lookUpOf(gift, tokens))).join('\n'));
    const unredeemed = data.gifts.filter(({ status }) => status === 'issued');
    writeFileSync(redemptions, unredeemed.map((gift) => JSON.stringify(redemptionOf(gift, tokens))).join('\n'));
    let taken = 0;
    const answered = async (seconds: number): Promise<Answered> => {
      const amount = RATE.redemptions * seconds;
      const skip = taken;
      taken += amount;
      const json = { 'Content-Type': 'application/json' };
      const [looked, redeemed] = await Promise.all([
        load({
          url: service.url,
          method: 'GET',
          connections: 16,
          requests: lookUps,
          pick: { kind: 'random', seconds },
          perSecond: RATE.lookUps,
          expect: 200,
        }),
        load({
          url: service.url,
          method: 'POST',
          connections: 8,
          requests: redemptions,
          pick: { kind: 'once', skip, amount },
          perSecond: RATE.redemptions,
          headers: json,
          expect: 201,
        }),
      ]);
      return { lookUps: looked, redemptions: redeemed };
    };
    // Warm: both measurements meet the same service.
    await answered(5);
    const alone = await answered(SECONDS);
    const loaded = answered(SECONDS + (2 * SETTLE_MS) / 1_000);
    await wait(SETTLE_MS);
    const rebuilding = startCommand(dir, ['projections', 'rebuild', 'gifts', '--json']);
    const during = await loaded;
    const progress = rebuilding.lines().filter(({ action }) => action === 'building');
    const [first, last] = [progress[0], progress.at(-1)];
    if (first === undefined || last === undefined || first === last)
      throw new Error('the rebuild did not get far enough to be measured');
    // Lines come once a second; the log is told by its positions, as the rebuild alone is by all of its events.
    const perSecond = (Number(last['position']) - Number(first['position'])) / (progress.length - 1);
    rebuilding.interrupt();
    const finished = await rebuilding.ended.then(
      () => true,
      () => false,
    );
    if (!finished) await command(dir, ['rebuild', 'gifts', '--abort']);
    return { alone, during, perSecond };
  } finally {
    await service.stop();
  }
}
