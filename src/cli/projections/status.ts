import { Command } from 'commander';
import { buildText } from '../../runtime/readmodels/index.js';
import { PROJECTIONS } from '../../projections/index.js';
import type {
  PreviousBuildStatus,
  FailingPart,
  ProcessManagerStatus,
  ReadModelStatus,
  RebuildStatus,
  ServedBuildStatus,
  StatusEntry,
} from '../../ops/status/status.js';
import { outwardState } from '../../ops/outward/outwardWork.js';
import { openServiceStatus } from '../../ops/status/serviceStatus.js';
import { describeFailing } from '../../runtime/supervision/followers.js';
import { withStores } from '../engines.js';
import { examples, jsonLine, printable, tableLines } from '../output.js';
import { heldLines } from '../outward.js';
import { type Terminal, writeLines } from '../terminal.js';

export function statusCommand(terminal: Terminal): Command {
  return new Command('status')
    .summary('how every read model and process manager stands')
    .description(
      `Shows for every read model and process manager how far it is behind the log's end, counted in the events that concern it and in seconds, how fast it is, which
process works on it, and what is in flight, parked or quarantined. Process managers stand at the oldest work that is still open: one buyer who has yet to prove
who they are leaves all of them behind by everything since, and what is in flight says how little is left. It is read from the engines alone, so what is stuck
can't look healthy. Takes two seconds.`,
    )
    .option('--json', 'one JSON object a line on standard output')
    .addHelpText('after', examples('gift projections status'))
    .action(async ({ json }: { json?: true }) => {
      await withStores(
        terminal,
        async ({ events, store, open }) => {
          const found = await open.add(openServiceStatus({ events, store, projections: PROJECTIONS })).look();
          const { held } = await outwardState(events);
          const waits =
            json === true && held !== undefined ? [jsonLine({ kind: 'outward_work', held })] : heldLines(held);
          await writeLines(terminal.stdout, [...(json === true ? found.map(jsonLine) : wordsOf(found)), ...waits]);
        },
        { onlyReads: true },
      );
    });
}

function wordsOf(found: readonly StatusEntry[]): string[] {
  const models = found.filter((one): one is ReadModelStatus => one.kind === 'projection');
  const processes = found.filter((one): one is ProcessManagerStatus => one.kind === 'process');
  const parts = found.filter((one): one is FailingPart => one.kind === 'part');
  const lag = ({ lag_events, lag_exact, lag_seconds }: ReadModelStatus | ProcessManagerStatus): [string, string] => [
    `${lag_exact ? '' : 'over '}${lag_events.toLocaleString('en-GB')}`,
    lag_seconds === null ? '?' : `${lag_seconds.toFixed(1)} s`,
  ];
  const holder = (one: ReadModelStatus | ProcessManagerStatus): string => one.holder ?? 'no process';
  return [
    ...tableLines(
      ['read model', 'version', 'in use', 'position', 'behind', 'for', 'events/s', 'quarantined', 'kept up to date by'],
      models.map((one) => [
        one.name,
        versionText(one),
        one.in_use ? 'yes' : 'no',
        one.position ?? 'none',
        ...lag(one),
        one.per_second,
        one.quarantined,
        holder(one),
      ]),
    ),
    '',
    ...tableLines(
      ['process manager', 'position', 'behind', 'for', 'events/s', 'in flight', 'parked', 'run by'],
      processes.map((one) => [
        one.name,
        one.position ?? 'none',
        ...lag(one),
        one.per_second,
        one.in_flight,
        one.parked,
        holder(one),
      ]),
    ),
    ...invalidTexts(models, processes),
    ...lastHolderLines(models, processes),
    ...parts.flatMap(({ name, process, ...health }) => [
      '',
      printable(
        `${name} of ${process} ${describeFailing({ failures: health.failures, since: health.since ?? undefined, why: health.why ?? undefined })}`,
      ),
    ]),
    ...models.flatMap(({ name, rebuild }) => (rebuild === null ? [] : ['', rebuildText(name, rebuild)])),
    ...models.flatMap((one) => (one.served === null ? [] : ['', servedText(one, one.served)])),
    ...models.flatMap((one) =>
      [one.previous, one.previous_release].flatMap((build) => (build === null ? [] : [previousText(one, build)])),
    ),
  ];
}

/** Warnings about invalid positions. Process managers share one position, which is named once. */
function invalidTexts(models: readonly ReadModelStatus[], processes: readonly ProcessManagerStatus[]): string[] {
  const absent = (of: string, position: string): string =>
    printable(`${of}: the stored position ${position} is not a position in this log and counts as absent`);
  const texts = models.flatMap(({ name, invalid_position: own, served }) => {
    const invalid = own ?? served?.invalid_position ?? null;
    return invalid === null ? [] : [`${absent(name, invalid)}: a process with the role projector builds it anew`];
  });
  const [managers] = processes;
  const checkpoint = managers?.invalid_position ?? null;
  if (checkpoint !== null) texts.push(`${absent('process managers', checkpoint)}: the log is read from its beginning`);
  return texts.length === 0 ? [] : ['', ...texts];
}

function lastHolderLines(models: readonly ReadModelStatus[], processes: readonly ProcessManagerStatus[]): string[] {
  const led = [
    ['the read models', models],
    ['the process managers', processes],
  ] as const;
  return led.flatMap(([what, all]) => {
    const last = all.find(({ last_holder: one }) => one !== null)?.last_holder ?? null;
    if (last === null) return [];
    const alive =
      last.lives === true
        ? ', and lives: see what its /readyz says; its disk may be full'
        : last.lives === false
          ? ', and has ended'
          : '';
    return [
      '',
      printable(
        `no process leads ${what}${last.since === null ? '' : ` since ${last.since}`}: ${last.process} had led them last${alive}`,
      ),
    ];
  });
}

function previousText({ name, version, in_use }: ReadModelStatus, previous: PreviousBuildStatus): string {
  const own = in_use
    ? `gift projections rollback ${name}`
    : 'a process of this release that leads takes it into use again';
  const back = previous.version === version ? own : 'the release that made it takes it into use again';
  return `${name}: ${buildText(previous)} is kept until ${previous.until} (${back})`;
}

const versionText = ({ version, build }: { readonly version: number; readonly build: number }): string =>
  build === 0 ? `${version}` : `${version}, build ${build}`;

/**
 * The build of another release that readers use. A later release's build is used as long as a process of that release
 * leads. An earlier release's build is used until this program's version is built, which starts once no process of the
 * earlier release leads.
 */
function servedText(
  { name, version, holder: builder }: ReadModelStatus,
  { lag_events, lag_exact, holder, ...served }: ServedBuildStatus,
): string {
  const behind = `${lag_exact ? '' : 'over '}${lag_events.toLocaleString('en-GB')} event${lag_events === 1 ? '' : 's'} behind`;
  const kept =
    holder === null
      ? `no process keeps it up to date (${behind}): start a process of the release that made it beside, or wait`
      : `kept up to date by ${holder} (${behind})`;
  const later = served.version > version;
  const ends =
    later && holder !== null && (builder ?? holder) === holder
      ? 'until no process of its release leads'
      : `until version ${version} is built`;
  const starts =
    !later && builder === null && holder !== null
      ? ', which starts once no process of the earlier release leads: end those'
      : '';
  return printable(`${name}: readers use ${buildText(served)} ${ends}${starts}; ${kept}`);
}

function rebuildText(
  name: string,
  { kind, state, version, build, by, at, holder, events, total, per_second, seconds_left, reason }: RebuildStatus,
): string {
  const far =
    events === null
      ? ''
      : `, ${events.toLocaleString('en-GB')} events of ${total === null ? 'a number still unknown' : `about ${total.toLocaleString('en-GB')}`}`;
  const pace =
    per_second === null
      ? ''
      : `, ${per_second.toLocaleString('en-GB')}/s${seconds_left === null ? '' : `, ${Math.ceil(seconds_left)} s left`}`;
  const who =
    holder === null
      ? state === 'building'
        ? `; no process builds it: gift projections rebuild ${name} goes on, --abort ends it`
        : '; no projector runs that takes it over'
      : `, by ${holder}`;
  return printable(
    `${name}: ${kind} to ${versionText({ version, build })} is ${state}${far}${pace}${who}; asked for by ${by} at ${at}${reason === null ? '' : `: ${reason}`}`,
  );
}
