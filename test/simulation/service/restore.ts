/** The log is lost, and restored from a backup of it (docs/deployment.md#backup-and-restore). */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TreeHeadSigned } from '../../../src/domain/treeHeads.js';
import { idOf } from '../../../src/domain/streamName.js';
import { currentTime } from '../../../src/lib/clock.js';
import { randomUUID, sleep } from '../../../src/lib/world.js';
import type { ChargeReply, RefundReply } from '../../../src/messages/payments.js';
import { backupLog } from '../../../src/ops/backup/backupLog.js';
import { restoreLog } from '../../../src/ops/backup/restoreLog.js';
import { changeOutwardWork, outwardState } from '../../../src/ops/outward/outwardWork.js';
import { type Erasures, openErasures } from '../../../src/ops/people/index.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { CHARGE_PREFIX, REFUND_PREFIX } from '../../../src/providers/payments/simulated.js';
import { readable } from '../../../src/service/engines.js';
import { type EventLog, eventLog } from '../engines/eventLog.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import { openTileFolder } from '../../../src/ops/evidence/index.js';
import { parseCheckpoint } from '../../../src/ops/evidence/format/checkpoint.js';
import { parseNote } from '../../../src/ops/evidence/format/signedNote.js';
import { treeDir } from '../../../src/service/tree.js';
import type { Finding } from '../model/finding.js';
import type { Chance } from '../world/chance.js';
import { IMMEDIATE, linkTo } from '../world/link.js';
import { type SimulatedProcess, startProcess } from '../world/simulatedProcess.js';
import { perform } from '../world/simulatedWorld.js';
import type { Cluster } from './cluster.js';
import { BY_HAND_PREFIX, type ByHand, entriesOf } from './paymentAccount.js';

const OPERATOR = { user: 'cli:operator' };
const REASON = 'the machine is lost';
/** Virtual ms for which the restored log is held. */
const HOLD = { least: 0, most: 20_000 };
const RETRY_MS = 500;
const WITHIN_MS = 300_000;
/** Share of restores in which the key store is lost, too. */
const KEYS_LOST = 0.5;

/** A copy of the key store, of one moment. */
export interface CopiedKeys {
  /** Whether the processes' `MASTER_KEY` opens its rows. It does not once that has been changed, or is being changed. */
  fits(): boolean;
  /** Whether it is of before an erasure. */
  lacksErasures(): boolean;
  /** Puts it in the place of the key store of now. */
  putBack(): void;
}

/** Copies of the log and of the key store, of one moment. */
export interface Backups {
  readonly log: EventLog;
  readonly keys: CopiedKeys;
}

/** A restored log, which does no outward work until it is resumed. */
export interface RestoredLog {
  /** Resumes outward work after a while. To be called once the processes have started. */
  resumeLater(): void;
  /** Waits until it is resumed. @returns outward work that was done before */
  finish(): Promise<readonly Finding[]>;
  /** Erasures that are still undone, once the service has finished those that were in progress in the backup. */
  undone(): readonly Finding[];
}

export const backUp = (cluster: Cluster): Backups => ({ log: cluster.log.copied(), keys: copiedKeys(cluster) });

export function copiedKeys(cluster: Cluster): CopiedKeys {
  const { keys, log, masterKeys } = cluster;
  const [putBack, known] = [keys.copied(), erasedIn(log).length];
  return {
    fits: () => cluster.masterKeys === masterKeys && !masterKeys.includes(','),
    lacksErasures: () => erasedIn(log).length > known,
    putBack() {
      const rows = [...keys.rows.values()];
      putBack();
      cluster.lostRows = rows.filter(({ id }) => !keys.rows.has(id));
    },
  };
}

/**
 * Makes a log of its own id from a backup, and takes it as the cluster's, with an empty read store. The key store is the
 * one of now, or of the backup, too; then the erasures since are taken from a list that is kept elsewhere. Payments are
 * reconciled with the provider: it retains nothing that the log no longer knows the cause of. To be called while no
 * process runs.
 */
export async function restore(cluster: Cluster, backups: Backups, chance: Chance): Promise<RestoredLog> {
  return afterRestore(cluster, backups, { chance, restored: async () => restoredLog(cluster, backups.log) });
}

/**
 * The same of an event store that is put back by its own means: the log keeps its id. An operator holds it, and empties
 * the read store, as docs/deployment.md#backup-and-restore has it. Where it ends before a published head, none is signed
 * over it any more.
 */
export async function putBackLog(cluster: Cluster, backups: Backups, chance: Chance): Promise<RestoredLog> {
  return afterRestore(cluster, backups, {
    chance,
    async restored() {
      const log = backups.log.copied();
      const { head } = openTileFolder(treeDir(cluster.config('projector')), log.logId);
      cluster.headBeyond = headBeyond(log, await head());
      const context = { commandId: randomUUID(), correlationId: randomUUID(), by: OPERATOR, now: currentTime() };
      await changeOutwardWork(openSimulatedEvents(log, IMMEDIATE), 'held', REASON, context);
      return log;
    },
  });
}

interface RestoreOptions {
  readonly chance: Chance;
  /** The log that takes the place of the lost one. */
  readonly restored: () => Promise<EventLog>;
}

async function afterRestore(
  cluster: Cluster,
  backups: Backups,
  { chance, restored }: RestoreOptions,
): Promise<RestoredLog> {
  const { simulation, readStore, log: lost } = cluster;
  const operator = startProcess(simulation, { name: 'restorer' });
  await perform(simulation, operator, 'restore the log', async () =>
    restoreStores(cluster, backups, { chance, restored }),
  );
  readStore.documents.clear();
  readStore.records.clear();
  reconcile(cluster);
  const resumption = openResumption(cluster, { operator, chance, backedUp: backups.log });
  return {
    resumeLater: resumption.begin,
    finish: resumption.finish,
    undone: () => undoneErasures(cluster, lost, backups.log),
  };
}

/** The published head, where the log lacks its event. */
function headBeyond({ stored }: EventLog, published: string | undefined): Cluster['headBeyond'] {
  if (published === undefined) return undefined;
  const notes = stored.flatMap(({ type, data }) =>
    type === 'TreeHeadSigned' ? [(JSON.parse(data) as TreeHeadSigned['data']).note] : [],
  );
  const sizeOf = (note: string): number => parseCheckpoint(parseNote(note).body).size;
  const last = notes.at(-1);
  if (last !== undefined && sizeOf(last) >= sizeOf(published)) return undefined;
  return { note: published, events: notes.length };
}

/** What `gift backup` and `gift restore` do. */
async function restoredLog(cluster: Cluster, backedUp: EventLog): Promise<EventLog> {
  const restored = eventLog(randomUUID());
  const path = join(cluster.config('api').dataDir, 'backup');
  const backup = await backupLog(openSimulatedEvents(backedUp, IMMEDIATE), {
    path,
    hashKeyCheck: null,
    now: currentTime(),
  });
  const target = openSimulatedEvents(restored, IMMEDIATE);
  await restoreLog(target, { path, backup, by: OPERATOR, reason: REASON, now: currentTime() });
  rmSync(path);
  return restored;
}

/** Puts the log in its place, in some restores the key store, too, and does what `gift people erase-again` does. */
async function restoreStores(cluster: Cluster, backups: Backups, { chance, restored }: RestoreOptions): Promise<void> {
  const log = await restored();
  const listed = [];
  if (chance.happens(KEYS_LOST) && backups.keys.fits()) {
    cluster.simulation.marks.sometimes('the key store is restored with the log');
    for await (const one of erasuresOf(cluster).stored()) listed.push(one);
    backups.keys.putBack();
  }
  cluster.log = log;
  await erasuresOf(cluster).repeat({ now: currentTime(), listed });
}

interface ResumptionOptions {
  readonly operator: SimulatedProcess;
  readonly chance: Chance;
  readonly backedUp: EventLog;
}

/** An operator resumes outward work, and looks whether any was done before. */
function openResumption(cluster: Cluster, { operator, chance, backedUp }: ResumptionOptions) {
  const { simulation, ledger, receivers } = cluster;
  const requested = (): number => ledger.texts().filter(({ text }) => !text.startsWith(BY_HAND_PREFIX)).length;
  const counts = (): string => `${requested()} entries, ${receivers.received.length} deliveries`;
  const before = counts();
  /** Otherwise nobody can have charged, sent or delivered anything for the backup's log. */
  const waits = backedUp.stored.some(({ type }) => type === 'OutwardWorkStarted');
  const findings: Finding[] = [];
  let resumption: Promise<void> | undefined;

  async function resume(): Promise<void> {
    await sleep(chance.between(HOLD.least, HOLD.most));
    const events = openSimulatedEvents(cluster.log, linkTo('events', operator, simulation));
    const context = { commandId: randomUUID(), correlationId: randomUUID(), by: OPERATOR, now: currentTime() };
    for (;;)
      try {
        const done = counts();
        const { held } = await outwardState(events);
        if (waits && done !== before)
          findings.push({ rule: 'outward work', text: `${before} after the restore, ${done} before the resumption` });
        if (held !== undefined) simulation.marks.sometimes('a restored log is resumed');
        await changeOutwardWork(events, 'resumed', REASON, context);
        return;
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        await sleep(RETRY_MS);
      }
  }

  return {
    begin: (): void => operator.start('resume', async () => (resumption = resume())),
    async finish(): Promise<readonly Finding[]> {
      await perform(simulation, operator, 'wait for the resumption', async () => resumption, WITHIN_MS);
      return findings;
    },
  };
}

/** Persons whom the lost log shows as erased, and the restored one does not. */
function undoneErasures({ simulation, log }: Cluster, lost: EventLog, backedUp: EventLog): Finding[] {
  const again = erasedIn(log);
  const known = erasedIn(backedUp);
  const since = erasedIn(lost).filter((stream) => !known.includes(stream));
  if (since.length > 0) simulation.marks.sometimes('a restored log knows nothing of an erasure');
  return since
    .filter((stream) => !again.includes(stream))
    .map((stream) => ({ rule: 'erasure', text: `${stream} was erased, and is not in the restored log` }));
}

const erasedIn = ({ stored }: EventLog): string[] =>
  stored.flatMap(({ type, stream }) => (type === 'PersonErased' ? [stream] : []));

function erasuresOf({ log, keys, config }: Cluster): Pick<Erasures, 'stored' | 'repeat'> {
  const store = openSimulatedKeys(keys, IMMEDIATE);
  return openErasures(readable(openSimulatedEvents(log, IMMEDIATE), config('api'), undefined, store));
}

/** Takes from the provider what was requested of it for purchases and refunds that the log no longer knows. */
function reconcile({ log: { stored }, ledger }: Cluster): void {
  const causes = new Set(
    stored.flatMap(({ stream, type, data }) => {
      if (type === 'GiftsPurchased') return [CHARGE_PREFIX + idOf(stream)];
      if (type !== 'RefundRequested' && type !== 'RefundStarted') return [];
      const { refund_id: id, attempt = 1 } = JSON.parse(data) as {
        readonly refund_id: string;
        readonly attempt?: number;
      };
      return [`${REFUND_PREFIX}${id}/${attempt}`];
    }),
  );
  for (const prefix of [CHARGE_PREFIX, REFUND_PREFIX])
    for (const [rest] of entriesOf<ChargeReply | RefundReply>(ledger, prefix))
      if (!causes.has(prefix + rest)) ledger.delete(prefix + rest, undefined, 0);
  for (const [rest, { transaction_id }] of entriesOf<ByHand>(ledger, BY_HAND_PREFIX))
    if (!causes.has(CHARGE_PREFIX + transaction_id)) ledger.delete(BY_HAND_PREFIX + rest, undefined, 0);
}
