/** `gift history` (docs/support.md#shown-events, docs/support.md#spans-of-time). */
import { Command } from 'commander';
import { ALL_RELATIONS, giftAsOf } from '../ops/history/giftAsOf.js';
import { csvWriter } from '../ops/exports/csv.js';
import { EVENT_COLUMNS, eventBlocks, eventRow } from '../ops/history/eventRows.js';
import { type EventView, eventView } from '../ops/history/eventView.js';
import { withPersonalTexts } from '../ops/history/personalTexts.js';
import { type HistoryDeps, type NamedGifts, giftHistory, namedGifts } from '../ops/history/giftHistory.js';
import { withLogFallback } from '../ops/history/withLogFallback.js';
import { asOf } from '../ops/ranges/timeBounds.js';
import { DEFAULT_ZONE } from '../ops/ranges/times.js';
import { keyedHash } from '../domain/keyedHash.js';
import { refuseUnlessKeysFit } from '../service/keysCheck.js';
import { findHashKey } from '../service/keys.js';
import { addressOf } from '../lib/urls.js';
import { type OpenedStores, readStores } from './engines.js';
import {
  type CsvFlags,
  type SightFlags,
  cliAccess,
  explainMask,
  outputOptions,
  sightOf,
  sightOptions,
} from './exports.js';
import { giftNamed } from './giftNamed.js';
import { blockLines, examples, jsonLine, jsonText } from './output.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from './terminal.js';
import { pastInstantOf, zoneOf } from './ranges.js';

interface HistoryFlags extends SightFlags, CsvFlags {
  readonly asOf?: string;
  readonly embed?: readonly string[];
  readonly viewer?: string;
  readonly timeZone: string;
  readonly json?: true;
}

export function historyCommand(terminal: Terminal): Command {
  const command = new Command('history')
    .summary("show every event of a gift's life")
    .description(
      `Shows every event of a gift's life across streams, in order: who, when, where, by which request, and what led to it. Secret fields are shown nowhere,
personal ones masked. With --as-of: the gift as the API would have shown it then, with the catalogue and the accounts of then.`,
    )
    .argument('<gift>', "the gift's id or shortcode, the id of one of its redemptions, or its transaction's")
    .option(
      '--as-of <time>',
      'the gift as it stood then: 2026-05-04T12:30:00Z, "2026-05-04 12:30" or a day, of which the end is meant',
    )
    .option(
      '--viewer <user>',
      "with --as-of: with this user's eyes (default: the owner's of then, or else the buyer's)",
    )
    .option('--embed <relation...>', 'with --as-of: what to embed (default: everything)')
    .option('--time-zone <zone>', 'the zone of times without an offset, and of days in CSV', DEFAULT_ZONE);
  sightOptions(outputOptions(command, { csv: true }));
  return command
    .addHelpText(
      'after',
      examples(
        'gift history 5f2c9d6a1b7e4c80d3a1',
        'gift history 5f2c9d6a1b7e4c80d3a1 --as-of "2026-05-04 12:30"',
        'gift history 19df2f781409c1e5b7a2d4f60813e5a --csv --personal --reason "request of the receiver" > life.csv',
      ),
    )
    .action(async (gift: string, flags: HistoryFlags) => runHistory(terminal, gift, flags));
}

async function runHistory(terminal: Terminal, identifier: string, flags: HistoryFlags): Promise<void> {
  refuseOddFlags(flags);
  const sight = sightOf(flags);
  await readStores(terminal, async (opened) => {
    const { events, models, config, subjects } = opened;
    // A sandbox's clock is known from here on.
    const time = flags.asOf === undefined ? undefined : pastInstantOf(flags.timeZone, flags.asOf, '--as-of');
    const key = (): Buffer | undefined => findHashKey(config);
    // With another key the events of a pool's code would silently be missing.
    await refuseUnlessKeysFit(opened, key);
    const gift = await giftNamed(opened, identifier);
    // A log without keyed hashes needs no key, and reading makes none.
    const deps: HistoryDeps = {
      events,
      models: withLogFallback(events, models, terminal.signal),
      hash: keyedHash(key() ?? Buffer.alloc(0)),
      subjects,
    };
    const found = await namedGifts(deps, gift).catch((error: unknown) => {
      throw terminal.signal.aborted ? interrupted('interrupted; nothing was shown') : error;
    });
    if (found === undefined)
      throw new CommandFailure(
        `nothing is known of ${JSON.stringify(identifier.slice(0, 64))}: give a gift's id or shortcode, a redemption's id or a transaction's`,
      );
    const recordShown = async (count: number): Promise<void> => {
      // Events are shown in UTC: the zone is only that of `--as-of`.
      const { timeZone, ...requested } = flags;
      const request = {
        gift,
        transactionId: found.transactionId,
        ...requested,
        ...(time === undefined ? {} : { timeZone }),
      };
      await cliAccess(events).shown('gift history', request, sight, count);
    };
    if (time !== undefined)
      return showAsOf(terminal, { deps, opened, found, time, flags, personal: sight.personal, recordShown });
    const shown = await withPersonalTexts(subjects, await giftHistory(deps, found), sight);
    const views = shown.map((event) => eventView(event, sight));
    await recordShown(views.length);
    await writeLines(
      terminal.stdout,
      flags.json === true
        ? views.map(jsonLine)
        : flags.csv === true
          ? csvOf(views, flags)
          : blocksOf(found, views, terminal.stdout.columns),
    );
    if (flags.json !== true && flags.csv !== true) await explainMask(terminal, views);
  });
}

function refuseOddFlags({ asOf, embed, viewer, csv }: HistoryFlags): void {
  if (asOf === undefined && (embed !== undefined || viewer !== undefined))
    throw usageFailure('--embed and --viewer go with --as-of');
  if (asOf !== undefined && csv === true)
    throw usageFailure('--as-of shows one gift: as text or with --json, not as --csv');
  const unknown = embed?.find((relation) => !ALL_RELATIONS.includes(relation));
  if (unknown !== undefined) throw usageFailure(`--embed ${unknown} is unknown: ${ALL_RELATIONS.join(', ')}`);
}

interface AsOfOptions {
  readonly deps: HistoryDeps;
  readonly opened: OpenedStores;
  readonly found: NamedGifts;
  readonly time: string;
  readonly flags: HistoryFlags;
  readonly personal: boolean;
  readonly recordShown: (count: number) => Promise<void>;
}

async function showAsOf(
  terminal: Terminal,
  { deps, opened, found, time, flags, personal, recordShown }: AsOfOptions,
): Promise<void> {
  const { giftIds, purchase } = found;
  const [giftId] = giftIds;
  if (giftId === undefined || giftIds.length > 1)
    throw new CommandFailure(
      `this transaction has ${giftIds.length} gifts: name one of them\n${giftIds.slice(0, 20).join('\n')}`,
    );
  const then = await asOf(deps.events, time);
  const { viewer, embed } = flags;
  const embeds = [
    ...new Set(
      (embed ?? ALL_RELATIONS).flatMap((relation) =>
        relation.split('.').map((_, step, steps) => steps.slice(0, step + 1).join('.')),
      ),
    ),
  ];
  const { publicUrl, host, port } = opened.config;
  const requested = { giftId, purchase, moment: then, embeds, personal, viewer };
  const answer = await giftAsOf(
    { ...deps, catalogue: opened.models.catalogue, publicUrl: publicUrl ?? addressOf(host, port) },
    requested,
  );
  if (answer === 'no viewer') throw new CommandFailure(`at ${time} there was no user ${JSON.stringify(viewer)}`);
  if (answer === undefined || then === undefined)
    throw new CommandFailure(
      `at ${time} (log position ${then?.position ?? 'before its beginning'}) there was no such gift`,
    );
  await recordShown(1);
  const { data, embedded } = answer;
  const shown = {
    as_of: time,
    position: then.position,
    stamped_later: then.stampedLater,
    time_zone: flags.timeZone,
    viewer: answer.viewer,
    blocked_by: answer.blocked_by,
    data,
    embedded,
  };
  await writeLines(terminal.stdout, [flags.json === true ? jsonLine(shown) : jsonText(shown)]);
  if (then.stampedLater > 0)
    await writeLines(terminal.stderr, [
      `gift: ${then.stampedLater} events before log position ${then.position} are stamped later, and left out: a clock was ahead, or set back`,
    ]);
}

function* csvOf(views: readonly EventView[], { timeZone, excel }: HistoryFlags): Generator<string> {
  const { heading, line } = csvWriter(EVENT_COLUMNS, { zone: zoneOf(timeZone), excel });
  yield heading.slice(0, -1);
  for (const view of views) yield line(eventRow(view)).slice(0, -1);
}

function blocksOf(
  { giftIds, transactionId }: NamedGifts,
  views: readonly EventView[],
  columns: number | undefined,
): string[] {
  const [giftId] = giftIds;
  const what =
    giftIds.length === 1 && giftId !== undefined
      ? `gift ${giftId} of transaction ${transactionId}`
      : `the ${giftIds.length} gifts of transaction ${transactionId}`;
  const heading = `${what}: ${views.length} events, the last at log position ${views.at(-1)?.position ?? ''}; times are UTC`;
  return [...blockLines([{ head: heading, paragraphs: [] }], columns), '', ...blockLines(eventBlocks(views), columns)];
}
