/** Read models, process managers and other parts, as the status of the service shows them. */
import { describeFailing } from '../../../runtime/supervision/followers.js';
import { TREE_PART } from '../../evidence/index.js';
import type {
  FailingPart,
  LastHolder,
  ProcessManagerStatus,
  ReadModelStatus,
  StatusEntry,
} from '../../status/status.js';
import type { Found, FindingCode } from '../findings.js';
import type { Rebuild } from '../../../runtime/readmodels/index.js';
import type { ParkedName } from '../../../domain/parked.js';
import type { ParkedGroup } from '../../parked/groups.js';

/** Seconds as in the alerts: a read model is behind, and work is open for longer than a buyer may authenticate. */
const BEHIND_SECONDS = 30;
const STUCK_SECONDS = 900;

/**
 * @param held why outward work is held; `undefined`: it is done
 * @param measured age in seconds of the oldest open work that no limit of our own holds back; `undefined`: not known
 */
export function checkStatus(
  entries: readonly StatusEntry[],
  held: string | undefined,
  measured: number | undefined,
): Found[] {
  const models = entries.filter((one): one is ReadModelStatus => one.kind === 'projection');
  const managers = entries.filter((one): one is ProcessManagerStatus => one.kind === 'process');
  const parts = entries.filter((one): one is FailingPart => one.kind === 'part');
  const folds = models.some(({ holder, served }) => holder !== null || (served?.holder ?? null) !== null);
  const charges = managers.some(({ holder }) => holder !== null);
  return [
    ...(folds || charges ? [] : [stopped(models, managers)]),
    ...(held === undefined ? [] : [{ code: 'outward_work_held' as const, what: `outward work waits: ${held}` }]),
    ...(folds && !charges && held === undefined
      ? [
          {
            code: 'process_managers_without_leader' as const,
            what: `no process leads the process managers${lastText(managers)}`,
          },
        ]
      : []),
    ...(charges && !folds
      ? [
          {
            code: 'read_models_without_leader' as const,
            what: `no process keeps the read models up to date${lastText(models)}`,
          },
        ]
      : []),
    ...(charges ? stuck(managers, measured) : []),
    ...models.flatMap((model) => modelFindings(model, folds)),
    ...parts.map(failing),
  ];
}

function stopped(models: readonly ReadModelStatus[], managers: readonly ProcessManagerStatus[]): Found {
  return {
    code: 'service_stopped',
    what: `no process of the service works on this log${lastText([...managers, ...models])}`,
  };
}

function lastText(all: readonly { readonly last_holder: LastHolder | null }[]): string {
  const last = all.find(({ last_holder: one }) => one !== null)?.last_holder ?? null;
  if (last === null) return '';
  const alive = last.lives === true ? ', which lives, perhaps frozen or with a full disk' : '';
  return `; the last was ${last.process}${last.since === null ? '' : ` until ${last.since}`}${alive}`;
}

/** The process managers share one position, so that one of them tells of all. */
function stuck(managers: readonly ProcessManagerStatus[], measured = Number.POSITIVE_INFINITY): Found[] {
  const inFlight = managers.reduce((sum, one) => sum + one.in_flight, 0);
  const seconds = Math.min(measured, Math.max(0, ...managers.map(({ lag_seconds }) => lag_seconds ?? 0)));
  if (seconds <= STUCK_SECONDS) return [];
  return [
    {
      code: 'purchases_stuck',
      what: `the oldest open work is ${Math.round(seconds / 60)} minutes old; ${inFlight} in flight`,
    },
  ];
}

function modelFindings(
  { name, invalid_position: invalid, lag_seconds, lag_events, lag_exact, quarantined, in_use, served }: ReadModelStatus,
  folds: boolean,
): Found[] {
  const progress =
    in_use || served === null
      ? { invalid, lag_seconds, lag_events, lag_exact }
      : { invalid: served.invalid_position, ...served };
  const behind = progress.lag_seconds ?? 0;
  return [
    ...(progress.invalid === null
      ? []
      : [
          {
            code: 'read_model_invalid' as const,
            what: `${name}: its stored position ${progress.invalid} is not a position in this log`,
          },
        ]),
    ...(folds && behind > BEHIND_SECONDS
      ? [
          {
            code: 'read_model_behind' as const,
            what: `${name} is ${progress.lag_exact ? '' : 'over '}${progress.lag_events} events and ${Math.round(behind)} s behind the log`,
          },
        ]
      : []),
    ...(quarantined === 0
      ? []
      : [
          {
            code: 'documents_quarantined' as const,
            what: `${name}: ${quarantined} ${quarantined === 1 ? 'document is' : 'documents are'} out of service`,
            // It lists the documents, and says how to repair them: `repair --found` knows what it has found.
            command: `gift projections verify ${name}`,
          },
        ]),
  ];
}

const failing = ({ name, process, since, failures, why }: FailingPart): Found => ({
  code: name === TREE_PART ? 'tree_failing' : 'part_failing',
  what: `${name} of ${process} ${describeFailing({ failures, since: since ?? undefined, why: why ?? undefined })}`,
});

export interface NamedRebuild {
  readonly name: string;
  readonly rebuild: Rebuild;
}

/**
 * Rebuilds of read models that nobody finishes.
 * @param status `undefined` where it is not known: then nothing is said of who builds
 */
export function checkRebuilds(rebuilds: readonly NamedRebuild[], status: readonly StatusEntry[] | undefined): Found[] {
  const builders = new Map(
    status
      ?.filter((one): one is ReadModelStatus => one.kind === 'projection')
      .map(({ name, rebuild }) => [name, rebuild?.holder ?? null]),
  );
  return rebuilds.flatMap(({ name, rebuild: { kind, by, at, failure } }): Found[] => {
    const requested = `the ${kind} of ${name} that ${by} requested at ${at}`;
    if (failure !== undefined)
      return [
        {
          code: 'rebuild_failed',
          what: `${requested} failed: ${failure}`,
          command: `gift projections rebuild ${name} --abort`,
        },
      ];
    if (status === undefined || (builders.get(name) ?? null) !== null) return [];
    return [
      {
        code: 'rebuild_waits',
        what: `${requested} has no process that builds it`,
        command: `gift projections rebuild ${name} --reason "<why>"`,
      },
    ];
  });
}

/** Parked work, a finding for each group of one cause. */
const CODES: Readonly<Record<ParkedName, FindingCode>> = {
  purchase: 'parked_purchases',
  refund: 'parked_refunds',
  dispute: 'parked_disputes',
  notification: 'parked_notifications',
};

export function checkParked(groups: readonly ParkedGroup[]): Found[] {
  return groups.map((group) => ({
    code: CODES[group.process],
    what: describeGroup(group),
    command: `gift parked retry --group ${group.id} --reason "<why>"`,
  }));
}

/** Discards that died before they had declined the charge, or failed the notification: nothing else ends these. */
export function checkInterrupted(groups: readonly ParkedGroup[]): Found[] {
  return groups.map((group) => ({
    code: CODES[group.process],
    what: `discarded, but the discard was interrupted: ${describeGroup(group)}`,
    command: `gift parked discard ${group.example} --reason "<why>"`,
  }));
}

const describeGroup = ({ process, step, cause, count, first_at, last_at, example }: ParkedGroup): string =>
  `${count} × ${process} ${step}, ${first_at === last_at ? first_at : `${first_at} to ${last_at}`}, such as ${example}: ${cause}`;
