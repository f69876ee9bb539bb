/** What a thief does who has the disk of an EventStoreDB. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { openEventStoreDb } from '../../../../src/adapters/eventstoredb/eventStore.js';
import type { EventStore } from '../../../../src/ports/eventStore.js';
import {
  eventStoreCommand,
  type EventStoreServer,
  startEventStoreServer,
} from '../../../support/engines/eventStoreServer.js';
import { type StoredLog, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite('the files of an EventStoreDB');
const TIMEOUT_MS = 20_000;
/** How long the server may take to read its chunks again. */
const REFUSED_MS = 60_000;
/** Its smallest chunks. */
const SMALL = { EVENTSTORE_CHUNK_SIZE: '1048576' };
/** Of a completed chunk: the MD5 of all before it. */
const SUM_BYTES = 16;
const ALTERED = ['{"n":7,', '{"n":8,'] as const;
const command = eventStoreCommand();

class Disk {
  readonly #dir = mkdtempSync(join(tmpdir(), 'gift-eventstore-'));
  readonly #options: Readonly<Record<string, string>>;
  readonly #chunk = join(this.#dir, 'db', 'chunk-000000.000000');
  server: EventStoreServer | undefined;

  constructor(options: Readonly<Record<string, string>>) {
    this.#options = options;
  }

  async start(): Promise<EventStoreServer> {
    this.server = await startEventStoreServer(command, this.#dir, this.#options);
    return this.server;
  }

  async open(): Promise<EventStore> {
    const { url } = await this.start();
    return openEventStoreDb({ url, timeoutMs: TIMEOUT_MS });
  }

  /** Texts of equal length; `from` stands once in the chunk's first megabyte. */
  async exchange([from, to]: readonly [string, string]): Promise<void> {
    assert.equal(from.length, to.length);
    chmodSync(this.#chunk, 0o600);
    const file = await open(this.#chunk, 'r+');
    try {
      const { buffer } = await file.read(Buffer.alloc(1_000_000), 0, 1_000_000, 0);
      const at = buffer.indexOf(from);
      assert.ok(at > 0 && buffer.indexOf(from, at + 1) < 0, `${at}`);
      await file.write(to, at);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Of the completed chunk. */
  sums(): { readonly kept: string; readonly made: string } {
    const bytes = readFileSync(this.#chunk);
    assert.ok(statSync(`${this.#chunk.slice(0, -8)}1.000000`).size > 0, 'there is a second chunk');
    return {
      kept: bytes.subarray(-SUM_BYTES).toString('hex'),
      made: hash('md5', bytes.subarray(0, -SUM_BYTES)),
    };
  }

  async sumAgain(): Promise<void> {
    const { made } = this.sums();
    const file = await open(this.#chunk, 'r+');
    try {
      await file.write(Buffer.from(made, 'hex'), 0, SUM_BYTES, statSync(this.#chunk).size - SUM_BYTES);
    } finally {
      await file.close();
    }
  }

  async remove(): Promise<void> {
    await this.server?.stop();
    rmSync(this.#dir, { recursive: true });
  }
}

/** A log of so many events, signed; its server is stopped. */
async function signed(disk: Disk, count: number): Promise<StoredLog> {
  const log = await storedLog(() => disk.open());
  await log.fill(count);
  await log.keepUntilSigned();
  assert.equal((await log.verify()).agrees, true);
  await log.events.close();
  await disk.server?.stop();
  return log;
}

async function isFound(log: StoredLog): Promise<void> {
  const { agrees, gaps, difference } = await log.verify();
  assert.deepEqual([agrees, gaps.found], [false, 0]);
  assert.deepEqual([difference?.change, difference?.number, difference?.count], ['altered', 8, 1]);
  assert.equal(difference?.event?.revision, 7);
  await log.fill(1);
  rmSync(log.folder.path, { recursive: true });
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError' },
  );
}

function onServer(name: string, run: () => Promise<void>): void {
  if (command !== '') {
    test(name, run);
    return;
  }
  console.log(`skipped: ${name}: TEST_EVENTSTORE_START, which starts a server for this alone, is not set`);
  test.skip(name, () => undefined);
}

onServer('an event that was altered in the last chunk is named, and no server notices it', async () => {
  const disk = new Disk({});
  try {
    const log = await signed(disk, 300);
    await disk.exchange(ALTERED);
    log.events = await disk.open();
    await isFound(log);
    await log.close();
  } finally {
    await disk.remove();
  }
});

onServer('an altered completed chunk is refused by the server, and named where its sum was altered too', async () => {
  const disk = new Disk(SMALL);
  try {
    const log = await signed(disk, 4_000);
    const { kept, made } = disk.sums();
    assert.equal(kept, made);
    await disk.exchange(ALTERED);
    // It starts, reads its chunks again, and ends.
    const ended = disk.start().then(
      async (server) => server.ended.then(() => true),
      () => true,
    );
    assert.equal(await Promise.race([ended, sleep(REFUSED_MS, false, { ref: false })]), true);
    await disk.sumAgain();
    log.events = await disk.open();
    await isFound(log);
    await log.close();
  } finally {
    await disk.remove();
  }
});

test.run();
