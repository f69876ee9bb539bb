/** Verifies a log with all that is known of its heads (docs/evidence.md#verifying-a-log). */
import type { EventStore } from '../../../ports/eventStore.js';
import type { NoteVerifier } from '../format/signedNote.js';
import type { HeadToCheck, StoredHead } from '../heads/headsToCheck.js';
import { continuedHeads, otherSignedLogs } from '../heads/otherLogs.js';
import { verifiersOf } from '../heads/signedHeads.js';
import { latestWitnessed, type WitnessesToAsk } from '../heads/witnessedHeads.js';
import { findReadableRules, leavesOf } from '../tree/leaves.js';
import type { TileFolder } from '../tree/tileFolder.js';
import { describeVerification, type Fault, firstFault } from './describe.js';
import { openLeafThread } from '../tree/leafBatches.js';
import type { LogVerification } from './verification.js';
import { verifyEvents } from './verifyEvents.js';
import type { KeptProgress } from './verifyProgress.js';

/** Number of events from which a second thread saves more time than it takes to start. */
const LARGE_LOG = 20_000;
const MISSING = async (): Promise<undefined> => undefined;
const NO_TILES = { head: MISSING, lastPositions: async () => [], read: MISSING, witnessed: MISSING };

export interface SignedLog {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'end' | 'engine' | 'logId' | 'read' | 'readAll' | 'readTexts' | 'unsequenced'>;
  /** Absent for a log without tiles: its heads tell how many events they cover. */
  readonly folder?: Pick<TileFolder, 'head' | 'lastPositions' | 'read' | 'witnessed'>;
  /** Texts of SEAL_KEY. */
  readonly keys: readonly string[];
}

interface VerifyLogOptions {
  readonly signal?: AbortSignal | undefined;
  /** @param total number of the log's events, where the engine tells it */
  readonly onProgress?: (events: number, total: number | undefined) => void;
  /** Verifiers of other keys than those of SEAL_KEY. */
  readonly verifiers?: readonly NoteVerifier[];
  /** Heads that were retained outside the log and SEAL_DIR. */
  readonly retained?: readonly StoredHead[];
  readonly witnesses?: WitnessesToAsk;
  /**
   * Folder of the trees of this log and others. Where it is given, the log must continue the logs that it was made
   * from, and others are named.
   */
  readonly trees?: string;
  /** Stored progress of an interrupted verification. Absent: the whole log is read, and no progress is stored. */
  readonly progress?: KeptProgress | undefined;
  /** Whether a second thread may hash leaves: only for programs that end soon. */
  readonly thread?: boolean;
}

/** What a verification found, with its most informative fault, and all of it as sentences. */
interface Verified {
  readonly report: LogVerification;
  /** `undefined`: everything is as it was signed, or nothing was signed. */
  readonly fault: Fault | undefined;
  readonly lines: readonly string[];
}

/**
 * Verifies a log, to which the service may continue to append.
 * @throws MalformedEvidenceError for a retained head that is malformed; UnavailableError, the file system's errors, the
 * signal's reason
 */
export async function verifyLog(log: SignedLog, options: VerifyLogOptions = {}): Promise<Verified> {
  const { stored, folder = NO_TILES, keys } = log;
  const { signal, onProgress, verifiers, retained = [], witnesses, trees, progress, thread } = options;
  const known = verifiersOf(keys, verifiers);
  const rules = await findReadableRules(stored);
  // A position of the embedded log is the number of its event.
  const total = stored.engine === 'embedded' ? Number((await stored.end()) ?? 0) : undefined;
  const continued = trees === undefined ? [] : await continuedHeads(stored, known);
  const witnessed: readonly HeadToCheck[] =
    witnesses === undefined ? [] : await latestWitnessed(witnesses, stored, known, signal);
  const hashing =
    thread === true && rules !== undefined && (total ?? 0) >= LARGE_LOG ? openLeafThread(rules) : undefined;
  try {
    const found = await verifyEvents(
      {
        stored,
        leaves: rules === undefined ? undefined : leavesOf(rules),
        thread: hashing,
        folder,
        verifiersOf: known,
        kept: retained,
        witnessed: [...witnessed, ...continued],
      },
      { signal, onProgress: (events) => onProgress?.(events, total), progress },
    );
    // The tree was started during the verification: its heads were read, and no leaf could be computed.
    if (rules === undefined && (await findReadableRules(stored)) !== undefined) return await verifyLog(log, options);
    const isVouchedFor = found.events === 0 || found.verified_heads > 0;
    const report = {
      ...found,
      agrees: found.agrees && isVouchedFor,
      other_logs: trees === undefined ? [] : await otherSignedLogs(trees, stored.logId, continued, known),
      continued_at: found.continued_from === 0 ? null : (progress?.at ?? null),
    };
    return { report, fault: firstFault(report), lines: [...describeVerification(report)] };
  } finally {
    await hashing?.close();
  }
}
