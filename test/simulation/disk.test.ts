import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { replaceFile } from '../../src/lib/files/replaceFile.js';
import { tileFolder } from '../../src/ops/evidence/tree/tileFolder.js';
import { type Disk, FULL_DISK, openDisk, POWER_CUT, WRITER_LOST } from './world/disk.js';
import { drawnFaults, noFaults } from './world/faults.js';
import { seededChance } from './world/chance.js';
import { linkTo } from './world/link.js';
import { mount } from './world/files.js';
import { openSimulation, perform } from './world/simulatedWorld.js';
import { type SimulatedProcess, startProcess } from './world/simulatedProcess.js';
import type { Simulation } from './world/simulation.js';

const test = suite('simulation/disk');

const SEEDS = 40;

interface Machine {
  readonly simulation: Simulation;
  readonly disk: Disk;
  readonly process: SimulatedProcess;
  /** Path of a file on the disk. */
  at(name: string): string;
}

/** Does something on a simulated disk whose faults have these rates, and removes it. */
async function onDisk(
  seed: number,
  rates: Readonly<Record<string, number>>,
  work: (machine: Machine) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gift-disk-'));
  const drawn = drawnFaults(seededChance(seed), rates);
  const faults = { ...noFaults(), happens: (name: string) => name in rates && drawn.happens(name) };
  const simulation = openSimulation({ seed, faults });
  const disk = openDisk(folder, simulation);
  const unmount = mount(disk);
  const process = startProcess(simulation, { name: 'writer' });
  disk.use(process);
  try {
    await work({ simulation, disk, process, at: (name) => join(folder, name) });
  } finally {
    unmount();
    rmSync(folder, { recursive: true });
  }
}

const CRASHED = { code: 'EIO' };

test('refuses writes while it is full, after a part of them, and takes them again', async () =>
  onDisk(1, { [FULL_DISK]: 1 }, async ({ simulation, process, at }) => {
    await perform(simulation, process, 'write', async () => {
      assert.throws(() => writeFileSync(at('one'), 'abcdef'), { code: 'ENOSPC' });
      assert.equal(readFileSync(at('one'), 'utf8'), 'abc');
      rmSync(at('one'));
    });
    assert.ok(!existsSync(at('one')));
  }));

test('keeps what a writer had done until it crashed, and nothing that came after', async () =>
  onDisk(1, { [WRITER_LOST]: 1 }, async ({ simulation, process, at }) => {
    await assert.rejects(
      perform(simulation, process, 'write', async () => replaceFile(at('one'), 'text')),
      CRASHED,
    );
    assert.ok(!process.alive);
    assert.equal(readFileSync(at('one.part'), 'utf8'), 'te');
    assert.ok(!existsSync(at('one')));
  }));

test('ends all processes of its machine when the power is cut in a write', async () =>
  onDisk(1, { [POWER_CUT]: 1 }, async ({ simulation, disk, process, at }) => {
    const other = startProcess(simulation, { name: 'other' });
    disk.use(other);
    await assert.rejects(
      perform(simulation, process, 'write', async () => replaceFile(at('one'), 'text')),
      CRASHED,
    );
    assert.deepEqual([process.alive, other.alive], [false, false]);
  }));

test('loses in a power cut what was not synced, and never what was', async () => {
  const lost = new Set<string>();
  for (let seed = 1; seed <= SEEDS; seed++)
    await onDisk(seed, {}, async ({ simulation, disk, process, at }) => {
      await perform(simulation, process, 'write', async () => {
        replaceFile(at('synced'), 'first');
        replaceFile(at('synced'), 'second');
        writeFileSync(at('unsynced'), 'text');
      });
      disk.cutPower();
      assert.equal(readFileSync(at('synced'), 'utf8'), 'second');
      lost.add(existsSync(at('unsynced')) ? readFileSync(at('unsynced'), 'utf8') : 'nothing');
    });
  const shapes = new Set(
    [...lost].map((text) => (text.includes('\0') ? 'zeros' : 'text'.startsWith(text) ? 'part' : text)),
  );
  assert.deepEqual([...shapes].sort(), ['nothing', 'part', 'zeros']);
  assert.ok(lost.has('text'));
});

test('refuses the writes of an engine whose disk is full, and answers its reads', async () => {
  const faults = { ...noFaults(), happens: (name: string) => name.endsWith('fills its disk') };
  const simulation = openSimulation({ seed: 1, faults });
  const process = startProcess(simulation, { name: 'one' });
  const stored: string[] = [];
  await perform(simulation, process, 'write and read', async () => {
    for (const engine of ['events', 'documents', 'keys', 'provider']) {
      const link = linkTo(engine, process, simulation);
      const writing = link.call({ text: 'write', effect: () => stored.push(engine) });
      if (engine === 'provider') await writing;
      else await assert.rejects(writing, { publicReason: 'its disk is full', outcomeUnknown: false });
      assert.equal(await link.call({ text: 'read', effect: () => 'read', reads: true }), 'read');
    }
  });
  assert.deepEqual(stored, ['provider']);
});

test('retains the tiles of a published head in a power cut', async () => {
  const hashes = Buffer.alloc(3 * 32, 7);
  const tile = { level: 0, index: 0, width: 3 };
  for (let seed = 1; seed <= SEEDS; seed++)
    await onDisk(seed, {}, async ({ simulation, disk, process, at }) => {
      const folder = tileFolder(at('log'));
      await perform(simulation, process, 'publish', async () => folder.publish('a head', [{ tile, hashes }]));
      disk.cutPower();
      assert.equal(await folder.head(), 'a head');
      assert.equal((await folder.read(tile))?.toString('hex'), hashes.toString('hex'), `seed ${seed}`);
    });
});

test.run();
