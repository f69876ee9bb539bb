/**
 * One look at all that the service knows of itself. It measures nothing itself and stores nothing: sources are what
 * readiness, status, parked work and the log's own streams have. What can't be looked at is a finding, too.
 */
import { clockMs } from '../../lib/clock.js';
import { within } from '../../lib/async/within.js';
import { EngineError, NoAnswerError } from '../../lib/engineError.js';
import { AlteredEventError, UnavailableError } from '../../ports/unavailable.js';
import type { headStatus } from '../evidence/index.js';
import type { OutwardState } from '../outward/outwardWork.js';
import type { ParkedGroup } from '../parked/groups.js';
import type { StatusEntry } from '../status/status.js';
import { checkParts, checkSeal, type PartHealth } from './checks/engines.js';
import { checkClocks, checkHead, type ProcessClock } from './checks/evidence.js';
import { checkGauges, oldestOpenSeconds } from './checks/gauges.js';
import {
  checkDisk,
  checkKeys,
  checkLimits,
  checkRoutines,
  checkSettings,
  type ReachedLimit,
  type Routine,
  type SettingsState,
} from './checks/operation.js';
import { checkInterrupted, checkParked, checkRebuilds, type NamedRebuild, checkStatus } from './checks/status.js';
import { checkSends, checkWebhooks, type EndpointState, type LateSends } from './checks/sending.js';
import { type Finding, type Found, inOrder } from './findings.js';

/** Where a diagnosis looks. Each source may reject: what it would have told is then named as not known. */
export interface DiagnosisSources {
  /** Names of engines that are servers, not embedded. */
  readonly servers: ReadonlySet<string>;
  readonly parts: () => Promise<Readonly<Record<string, PartHealth>>>;
  readonly status: () => Promise<readonly StatusEntry[]>;
  readonly outward: () => Promise<Pick<OutwardState, 'held'>>;
  readonly sealed: () => Promise<boolean>;
  readonly rebuilds: () => Promise<readonly NamedRebuild[]>;
  readonly parked: () => Promise<readonly ParkedGroup[]>;
  /** Parked work whose discard was interrupted. */
  readonly interrupted: () => Promise<readonly ParkedGroup[]>;
  /** What was to be sent some minutes ago. */
  readonly lateSends: () => Promise<LateSends>;
  readonly webhooks: () => Promise<readonly EndpointState[]>;
  readonly head: () => ReturnType<typeof headStatus>;
  /** Least time between two signed heads, ms. */
  readonly headsEveryMs: number;
  readonly clocks: () => Promise<readonly ProcessClock[]>;
  /** Why the keys are not the log's; `undefined`: they are. */
  readonly keys: () => Promise<string | undefined>;
  readonly settings: SettingsState;
  readonly limits: () => Promise<readonly ReachedLimit[]>;
  /** Routines that this installation needs. */
  readonly routines: () => Promise<readonly Routine[]>;
  /** Free bytes on the disk of DATA_DIR; `undefined`: nothing of the installation is stored there. */
  readonly freeBytes: () => Promise<number | undefined>;
  /** The page `/metrics`; empty where no process of the service shows one. */
  readonly metrics: () => Promise<string>;
  /** Takes errors that no engine causes: they are faults of the program, and are named as not known, too. */
  readonly onFault: (error: unknown) => void;
}

/** Milliseconds after which a source counts as silent: more than any engine's own deadline. */
const DEADLINE_MS = 15_000;

interface Check {
  /** What the check looks at, as text for the finding that it could not. */
  readonly subject: string;
  find(): Promise<readonly Found[]>;
}

function checksOf(sources: DiagnosisSources): readonly Check[] {
  const [status, outward, sealed] = [shared(sources.status), shared(sources.outward), shared(sources.sealed)];
  const metrics = shared(sources.metrics);
  return [
    {
      subject: 'engines',
      async find() {
        const [parts, known] = await Promise.all([sources.parts(), status().catch(() => [])]);
        const failing = known.flatMap((one) => (one.kind === 'part' ? [one.name] : []));
        return checkParts(parts, sources.servers, new Set(failing));
      },
    },
    { subject: 'the seal of the log', find: async () => checkSeal(await sealed()) },
    {
      subject: 'leaders, read models and parts of processes',
      async find() {
        const [entries, { held }, page] = await Promise.all([status(), outward(), metrics().catch(() => '')]);
        return checkStatus(entries, held, oldestOpenSeconds(page));
      },
    },
    {
      subject: 'rebuilds',
      async find() {
        const [rebuilds, known] = await Promise.all([sources.rebuilds(), status().catch(() => undefined)]);
        return checkRebuilds(rebuilds, known);
      },
    },
    { subject: 'parked work', find: async () => checkParked(await sources.parked()) },
    { subject: 'discards of parked work', find: async () => checkInterrupted(await sources.interrupted()) },
    {
      subject: 'scheduled sending',
      async find() {
        const [late, { held }] = await Promise.all([sources.lateSends(), outward()]);
        return held === undefined ? checkSends(late) : [];
      },
    },
    {
      subject: 'webhooks',
      async find() {
        const [endpoints, { held }] = await Promise.all([sources.webhooks(), outward()]);
        return checkWebhooks(endpoints, clockMs(), held);
      },
    },
    {
      subject: 'signed heads',
      async find() {
        const [head, isSealed] = await Promise.all([sources.head(), sealed()]);
        return isSealed ? [] : checkHead(head, sources.headsEveryMs, clockMs());
      },
    },
    {
      subject: 'clocks',
      async find() {
        const [clocks, entries] = await Promise.all([sources.clocks(), status()]);
        return checkClocks(clocks, new Set(entries.flatMap((one) => ('holder' in one ? (one.holder ?? []) : []))));
      },
    },
    { subject: 'keys', find: async () => checkKeys(await sources.keys()) },
    { subject: 'settings', find: async () => checkSettings(sources.settings) },
    { subject: 'limits', find: async () => checkLimits(await sources.limits()) },
    { subject: 'backups and reconciliation', find: async () => checkRoutines(await sources.routines()) },
    { subject: 'the disk', find: async () => checkDisk(await sources.freeBytes()) },
    { subject: 'providers, stalled webhooks and alterations', find: async () => checkGauges(await metrics()) },
  ];
}

/** What could not be looked at for one reason. */
interface Unknown {
  readonly subjects: readonly string[];
  /** Whether an event is damaged: the verification names it. */
  readonly isDamaged: boolean;
}

/** Findings in order of harm to people and money; none: nothing is wrong. Never rejects for an engine that is away. */
export async function diagnose(sources: DiagnosisSources): Promise<readonly Finding[]> {
  const unknown = new Map<string, Unknown>();
  const faults = new Set<unknown>();
  const found = await Promise.all(
    checksOf(sources).map(async ({ subject, find }) => {
      try {
        return await within(find(), DEADLINE_MS, () => {
          throw new UnavailableError('no answer in time', { publicReason: 'no answer in time' });
        });
      } catch (error) {
        if (!(error instanceof UnavailableError || error instanceof EngineError)) faults.add(error);
        const why = reasonOf(error);
        const subjects = [...(unknown.get(why)?.subjects ?? []), subject];
        unknown.set(why, { subjects, isDamaged: error instanceof AlteredEventError });
        return [];
      }
    }),
  );
  for (const fault of faults) sources.onFault(fault);
  const notKnown = [...unknown].map(([why, { subjects, isDamaged }]): Found => ({
    code: 'not_known',
    what: `${subjects.join(', ')}: ${why}`,
    ...(isDamaged ? { command: 'gift audit verify' } : {}),
  }));
  return inOrder([...found.flat(), ...notKnown]);
}

/** Reason that support may see: without a path or an address, unless the error has them for any reader. */
function reasonOf(error: unknown): string {
  if (error instanceof UnavailableError && error.publicReason !== undefined) return error.publicReason;
  if (error instanceof UnavailableError || error instanceof NoAnswerError) return 'an engine does not answer';
  // It names a setting, and what to change.
  if (error instanceof EngineError) return error.message;
  return `${error instanceof Error ? error.name : 'an error of no class'}: see the log of this process`;
}

/** Calls `read` once, for all that need it. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => (reading ??= read());
}
