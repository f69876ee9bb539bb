/** The tree, its signed heads and the proofs of events are of the log, as `gift audit verify` and any stranger verify it. */
import {
  checkProof,
  EvidenceError,
  noteVerifier,
  openTileFolder,
  proveEvents,
  type TileFolder,
  verifierKeys,
  verifyLog,
} from '../../../src/ops/evidence/index.js';
import type { TreeHeadSigned } from '../../../src/domain/treeHeads.js';
import type { EventStore, RecordedEvent } from '../../../src/ports/eventStore.js';
import { findSealKeys } from '../../../src/service/keys.js';
import { treeDir } from '../../../src/service/tree.js';
import type { EventLog } from '../engines/eventLog.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import type { Finding } from '../model/finding.js';
import type { Cluster } from '../service/cluster.js';
import { IMMEDIATE } from '../world/link.js';
import { startProcess } from '../world/simulatedProcess.js';
import { perform } from '../world/simulatedWorld.js';

/** Proofs of so many events, spread over the log. */
const PROOFS = 20;
const MOST_LINES = 12;
const HEAD = 'TreeHeadSigned' satisfies TreeHeadSigned['type'];
/** Virtual ms in which a head must be signed. */
const SIGNED_MS = 60_000;
/** Virtual ms from a head's event to its file in the folder. */
const WRITTEN_MS = 3_000;

/** Waits until a head is signed over all that the log holds. @returns the number of its events */
export async function untilSigned({ simulation, log, headBeyond }: Cluster): Promise<number> {
  if (headBeyond !== undefined) return 0;
  await simulation.run(simulation.ms() + SIGNED_MS, () => isSigned(log));
  const size = log.stored.length;
  await simulation.run(simulation.ms() + WRITTEN_MS);
  return size;
}

/** @param size number of the log's first events that a head must cover; default: all */
export async function checkEvidence(
  { simulation, log, config, headBeyond }: Cluster,
  size = log.stored.length,
): Promise<Finding[]> {
  const settings = config('projector');
  const keys = findSealKeys(settings) ?? [];
  const trees = treeDir(settings);
  const auditor = startProcess(simulation, { name: 'auditor' });
  return perform(simulation, auditor, 'verify the evidence', async () => {
    const stored = openSimulatedEvents(log, IMMEDIATE);
    const folder = openTileFolder(trees, stored.logId);
    if (headBeyond !== undefined) {
      const heads = log.stored.filter(({ type }) => type === HEAD).length - headBeyond.events;
      const isAlone = heads === 0 && (await folder.head()) === headBeyond.note;
      simulation.marks.sometimes('a log is put back to before a published head');
      return isAlone ? [] : [finding(`${heads} heads were signed over a log that ends before the published head`)];
    }
    const { report, lines } = await verifyLog({ stored, folder, keys }, { trees });
    if (!report.agrees) return [finding(...lines)];
    const behind = log.stored.slice(report.agreed_size, size).find(({ type }) => type !== HEAD);
    return [
      ...(behind === undefined ? [] : [finding(`no head covers ${behind.type} at ${behind.position}`)]),
      ...(await checkProofs(stored, size, folder, keys)),
    ];
  });
}

/** Whether a head covers all events but heads. */
function isSigned({ stored }: EventLog): boolean {
  const head = stored.findLast(({ type }) => type === HEAD);
  const last = stored.findLast(({ type }) => type !== HEAD);
  if (head === undefined || last === undefined) return false;
  return last.position <= (JSON.parse(head.data) as TreeHeadSigned['data']).position;
}

const finding = (...lines: readonly string[]): Finding => ({
  rule: 'evidence',
  text: lines.slice(0, MOST_LINES).join('\n'),
});

/** Whole events among the first ones, and the same ones with all hidden that can be. @param size number of the first ones */
async function checkProofs(
  stored: EventStore,
  size: number,
  folder: TileFolder,
  keys: readonly string[],
): Promise<Finding[]> {
  const verifiers = ((await verifierKeys(stored, keys)) ?? []).map(noteVerifier);
  const events: RecordedEvent[] = [];
  for await (const batch of stored.readAll(undefined)) events.push(...batch.events);
  const step = Math.ceil(size / PROOFS);
  const some = events.slice(0, size).filter(({ type }, index) => index % step === 0 && type !== HEAD);
  try {
    for (const isShown of [true, false]) {
      const proven = await proveEvents({ stored, folder }, some, () => ({ field: () => isShown, metadata: isShown }));
      if (proven?.events.length !== some.length) return [finding(`${some.length} events have no proofs`)];
      checkProof(JSON.stringify(proven.file), { log: verifiers, witnesses: [] });
    }
  } catch (error) {
    if (error instanceof EvidenceError) return [finding(`a proof does not verify: ${error.message}`)];
    throw error;
  }
  return [];
}
