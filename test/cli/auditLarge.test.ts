import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventLogFile, openEventLog } from '../../src/adapters/embedded/eventStore/log.js';
import { GIFT } from '../support/service/programs.js';

const REDEEMED = 100_000;
/** Of the first ones; reversed in the end, when nobody remembers them. */
const REVERSED = 1_000;
/** What the program may keep, in MB: a fraction of what it writes. */
const HEAP_MB = 64;

const test = suite('cli/audit, large');
let dir = '';

test.before(() => {
  dir = mkdtempSync(join(tmpdir(), 'audit-large-'));
  const database = openEventLog(eventLogFile(dir), {});
  database.pragma('synchronous = OFF');
  const insert = database.prepare(
    'INSERT INTO events (position, stream, revision, type, id, at, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const add = (position: number, gift: number, revision: number, type: string, data: object): void => {
    const id = `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`;
    const metadata = {
      commandId: id,
      correlationId: id,
      requestId: id,
      by: { user: 'till', client: 'pos', roles: ['redeem', 'unredeem'] },
    };
    const at = new Date(Date.UTC(2026, 0, 1) + position * 100).toISOString();
    insert.run(
      position,
      `gift-${String(gift).padStart(20, '0')}`,
      revision,
      type,
      id,
      at,
      JSON.stringify(data),
      JSON.stringify(metadata),
    );
  };
  database.exec('BEGIN');
  for (let n = 0; n < REDEEMED; n++) {
    const located = {
      location_id: `location-${n % 60}`,
      location_merchant_id: `merchant-${n % 12}`,
      merchant_id: `merchant-${n % 12}`,
    };
    add(n + 1, n, 0, 'GiftRedeemed', {
      redemption_id: `redemption-${n}`,
      ...located,
      brand_id: `brand-${n % 15}`,
      product_id: `product-${n % 80}`,
      value: 350,
    });
  }
  for (let n = 0; n < REVERSED; n++)
    add(REDEEMED + n + 1, n, 1, 'GiftUnredeemed', { redemption_id: `redemption-${n}` });
  database.exec('COMMIT');
  database.close();
});
test.after(() => rmSync(dir, { recursive: true }));

function exporting(args: readonly string[], node: readonly string[] = []): ChildProcess {
  return spawn(process.execPath, [...node, GIFT, 'audit', 'redemptions', ...args], {
    env: { PATH: process.env['PATH'], DATA_DIR: dir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

interface Exported {
  readonly code: number | null;
  readonly chunks: readonly Buffer[];
  readonly bytes: number;
  readonly err: string;
}

/** Reads what it writes; `enough`: it is killed by force once it has written so many bytes. */
async function taken(child: ChildProcess, enough = Number.POSITIVE_INFINITY): Promise<Exported> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let err = '';
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
  child.stdout?.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= enough) child.kill('SIGKILL');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, chunks, bytes, err };
}

const linesOf = ({ chunks }: Exported): string[] => Buffer.concat(chunks).toString().split('\n');

test('exports 100,000 redemptions in bounded memory, with reversals of long ago', async () => {
  const { code, chunks, bytes, err } = await taken(
    exporting(['--json'], [`--max-old-space-size=${HEAP_MB}`, '--max-semi-space-size=2']),
  );
  assert.is(code, 0, err.slice(-2_000));
  // As objects they would be several times their text.
  assert.ok(bytes > 0.6 * HEAP_MB * 1_000_000, String(bytes));
  const text = Buffer.concat(chunks).toString().trimEnd();
  const lines = text.split('\n');
  assert.is(lines.length, REDEEMED + REVERSED);
  const last = JSON.parse(lines.at(-1) ?? '') as {
    readonly type: string;
    readonly redemption: Readonly<Record<string, unknown>>;
  };
  assert.equal(
    [last.type, last.redemption['redemption_id'], last.redemption['value'], last.redemption['location_id']],
    ['GiftUnredeemed', `redemption-${REVERSED - 1}`, 350, `location-${(REVERSED - 1) % 60}`],
  );
  assert.match(err, new RegExp(`${REDEEMED + REVERSED} records up to log position`));
});

test('resumes an export that was killed in a line, without a gap or a repetition', async () => {
  const broken = await taken(exporting([]), 5_000_000);
  assert.is(broken.code, null);
  const kept = linesOf(broken).slice(0, -1);
  assert.ok(kept.length > 1_000 && kept.length < REDEEMED / 2, String(kept.length));
  const rest = linesOf(await taken(exporting(['--after', kept.at(-1)?.split(',')[0] ?? ''])));
  assert.is(rest.pop(), '');
  // The apostrophe keeps a spreadsheet from taking a position for a number.
  const positions = [...kept.slice(1), ...rest].map((line) => Number(line.split(',')[0]?.replace(/^'/, '')));
  assert.is(positions.length, REDEEMED + REVERSED);
  assert.ok(positions.every((position, index) => position === index + 1));
});

test.run();
