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
import { readStores } from '../engines.js';
import { examples, jsonLine, tableLines, textLines } from '../output.js';
import { describeTime } from '../progress.js';
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
      await readStores(terminal, async ({ events, store, open }) => {
        const found = await open.add(openServiceStatus({ events, store, projections: PROJECTIONS })).look();
        const { held } = await outwardState(events);
        const waits =
          json === true && held !== undefined ? [jsonLine({ kind: 'outward_work', held })] : heldLines(held);
        await writeLines(terminal.stdout, [
          ...(json === true ? found.map(jsonLine) : statusLines(found, terminal.stdout.columns)),
          ...waits,
        ]);
      });
    });
}

function statusLines(found: readonly StatusEntry[], columns: number | undefined): string[] {
  const models = found.filter((one): one is ReadModelStatus => one.kind === 'projection');
  const processes = found.filter((one): one is ProcessManagerStatus => one.kind === 'process');
  const parts = found.filter((one): one is FailingPart => one.kind === 'part');
  const behind = ({ lag_events, lag_exact, lag_seconds }: ReadModelStatus | ProcessManagerStatus): string =>
    `${lag_exact ? '' : 'over '}${lag_events.toLocaleString('en-GB')} (${lag_seconds === null ? '?' : describeLag(lag_seconds)})`;
  const texts = [
    ...invalidTexts(models, processes),
    ...lastHolderTexts(models, processes),
    ...parts.map(
      ({ name, process, ...health }) =>
        `${name} of ${process} ${describeFailing({ failures: health.failures, since: health.since ?? undefined, why: health.why ?? undefined })}`,
    ),
    ...models.flatMap(({ name, rebuild }) => (rebuild === null ? [] : [rebuildText(name, rebuild)])),
    ...models.flatMap((one) => (one.served === null ? [] : [servedText(one, one.served)])),
  ];
  const previous = models.flatMap((one) =>
    [one.previous, one.previous_release].flatMap((build) => (build === null ? [] : [previousText(one, build)])),
  );
  return [
    ...tableLines(
      ['read model', 'version', 'position', 'behind', 'events/s', 'quarantined'],
      models.map((one) => [
        one.name,
        `${versionText(one)}${one.in_use ? '' : ', not in use'}`,
        one.position ?? 'none',
        behind(one),
        one.per_second,
        one.quarantined,
      ]),
      columns,
    ),
    ...holderTexts('kept up to date by', models).flatMap((text) => textLines(text, columns)),
    '',
    ...tableLines(
      ['process manager', 'position', 'behind', 'events/s', 'in flight', 'parked'],
      processes.map((one) => [
        one.name,
        one.position ?? 'none',
        behind(one),
        one.per_second,
        one.in_flight,
        one.parked,
      ]),
      columns,
    ),
    ...holderTexts('run by', processes).flatMap((text) => textLines(text, columns)),
    ...texts.flatMap((text) => ['', ...textLines(text, columns)]),
    ...previous.flatMap((text) => textLines(text, columns)),
  ];
}

const describeLag = (seconds: number): string =>
  seconds < 60 ? `${seconds.toFixed(1)} s` : describeTime(seconds * 1_000);

/** Which process works on which of them; where all have the same one, they are not named. */
function holderTexts(does: string, all: readonly (ReadModelStatus | ProcessManagerStatus)[]): string[] {
  const holders = [...new Set(all.map(({ holder }) => holder))];
  return holders.map((holder) => {
    const names = all.filter((one) => one.holder === holder).map(({ name }) => name);
    return `${does} ${holder ?? 'no process'}${holders.length === 1 ? '' : `: ${names.join(', ')}`}`;
  });
}

/** Warnings about invalid positions. Process managers share one position, which is named once. */
function invalidTexts(models: readonly ReadModelStatus[], processes: readonly ProcessManagerStatus[]): string[] {
  const absent = (of: string, position: string): string =>
    `${of}: the stored position ${position} is not a position in this log and counts as absent`;
  const texts = models.flatMap(({ name, invalid_position: own, served }) => {
    const invalid = own ?? served?.invalid_position ?? null;
    return invalid === null ? [] : [`${absent(name, invalid)}: a process with the role projector builds it anew`];
  });
  const [managers] = processes;
  const checkpoint = managers?.invalid_position ?? null;
  if (checkpoint !== null) texts.push(`${absent('process managers', checkpoint)}: the log is read from its beginning`);
  return texts;
}

function lastHolderTexts(models: readonly ReadModelStatus[], processes: readonly ProcessManagerStatus[]): string[] {
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
      `no process leads ${what}${last.since === null ? '' : ` since ${last.since}`}: ${last.process} had led them last${alive}`,
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
  return `${name}: readers use ${buildText(served)} ${ends}${starts}; ${kept}`;
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
  return `${name}: ${kind} to ${versionText({ version, build })} is ${state}${far}${pace}${who}; asked for by ${by} at ${at}${reason === null ? '' : `: ${reason}`}`;
}
