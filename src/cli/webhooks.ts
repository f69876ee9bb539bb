/** `gift webhooks`: the webhook endpoints of all owners, and deliveries to them (docs/support.md#webhooks). */
import { Command } from 'commander';
import { openEndpoint, type OwnEndpoint, requestOwnDelivery } from '../commands/webhookEndpoints.js';
import { deliveryState } from '../deliveries/index.js';
import type { WebhookRecoverRequested, WebhookResendRequested } from '../domain/webhookEndpoint.js';
import { currentTime } from '../lib/clock.js';
import { type AttemptRow, attemptRow, attemptsOf } from '../ops/webhooks/attempts.js';
import { DeliveryFault, recoverRequest, resendRequest } from '../ops/webhooks/deliveryRequests.js';
import { type WebhookRow, webhookRows } from '../ops/webhooks/webhookRows.js';
import { commandLineContext, cliAccess, neededReason, outputOptions } from './exports.js';
import { type OpenedStores, readStores, withStores } from './engines.js';
import { examples, jsonLine, tableLines } from './output.js';
import { refuseWhileHeld } from './outward.js';
import { throwDescribed } from './refusals.js';
import { type Terminal, usageFailure, writeLines } from './terminal.js';

interface Flags {
  readonly json?: true;
}

interface RequestFlags extends Flags {
  readonly reason?: string;
}

const ENDPOINT = '6ec0bd7f11c043da975e2a8ad9ebae0b';
/** Endpoints that are read together. */
const AT_ONCE = 100;

export function webhooksCommand(terminal: Terminal): Command {
  return new Command('webhooks')
    .summary('webhook endpoints of all owners: list, attempts, resend, recover')
    .description('What support sees of webhook endpoints, and does for their owners.')
    .addCommand(listCommand(terminal))
    .addCommand(attemptsCommand(terminal))
    .addCommand(resendCommand(terminal))
    .addCommand(recoverCommand(terminal))
    .addHelpText('after', examples('gift webhooks list', `gift webhooks attempts ${ENDPOINT}`));
}

function listCommand(terminal: Terminal): Command {
  const command = new Command('list')
    .summary('list the endpoints of all clients and merchants')
    .description(
      'Lists webhook endpoints: whose each is, whether anything is delivered, what waits, and how the last attempt came out.',
    );
  return outputOptions(command)
    .addHelpText('after', examples('gift webhooks list', 'gift webhooks list --json'))
    .action(async ({ json }: Flags) => {
      const rows = await readStores(terminal, allRows);
      if (json === true) return writeLines(terminal.stdout, rows.map(jsonLine));
      const lines = rows.length === 0 ? ['there is no webhook endpoint'] : tableOf(rows, terminal.stdout.columns);
      return writeLines(terminal.stdout, lines);
    });
}

async function allRows({ events, store, models }: OpenedStores): Promise<readonly WebhookRow[]> {
  const { records } = store;
  const { logId } = events;
  const stateOf = async (id: string): ReturnType<typeof deliveryState> => deliveryState({ records, logId }, id);
  const deps = { endpoints: models.webhookEndpoints, records, logId, stateOf, now: currentTime };
  const all: WebhookRow[] = [];
  for (let after: string | null | undefined; after !== null;) {
    const { rows, next } = await webhookRows(deps, { limit: AT_ONCE, after });
    all.push(...rows);
    after = next;
  }
  return all;
}

function tableOf(endpoints: readonly WebhookRow[], columns: number | undefined): string[] {
  const rows = endpoints.map(({ last_attempt: last, ...row }) => [
    row.id,
    row.owner,
    row.url,
    row.disabled ? `disabled (${row.disabled_by}) ${row.disabled_at}` : row.failing ? 'failing' : 'enabled',
    row.types?.join(' ') ?? 'all',
    row.waiting,
    row.oldest_undelivered_at ?? '',
    last === null ? '' : `${last.at} ${outcomeOf(last)}`,
  ]);
  return [
    ...tableLines(
      ['endpoint', 'owner', 'url', 'state', 'types', 'waiting', 'oldest undelivered', 'last attempt'],
      rows,
      columns,
    ),
    '',
    'next: gift webhooks attempts ENDPOINT; gift webhooks recover ENDPOINT --since TIME --reason …',
  ];
}

const outcomeOf = ({ status, error }: AttemptRow): string => String(status ?? error ?? '');

function attemptsCommand(terminal: Terminal): Command {
  const command = new Command('attempts')
    .summary('the latest attempts to deliver to an endpoint')
    .description(
      'Shows attempts, the latest first, without what the receiver answered. They are stored for 30 days, of each endpoint the latest 50 that succeeded and 50 that failed.',
    )
    .argument('<endpoint>', "the endpoint's id");
  return outputOptions(command)
    .addHelpText('after', examples(`gift webhooks attempts ${ENDPOINT}`))
    .action(async (id: string, { json }: Flags) => {
      const attempts = await readStores(terminal, async ({ events, store }) => {
        await openEndpoint({ events }, id, commandLineContext());
        return (await attemptsOf(store.records, id)).map((attempt) => attemptRow(attempt, events.logId));
      }).catch(throwDescribed);
      if (json === true) return writeLines(terminal.stdout, attempts.map(jsonLine));
      const rows = attempts.map((one) => [
        one.at,
        one.type,
        one.event_id,
        outcomeOf(one),
        one.duration_ms,
        one.next_at ?? '',
      ]);
      return writeLines(
        terminal.stdout,
        rows.length === 0
          ? ['no attempt is stored']
          : tableLines(['time', 'type', 'event', 'outcome', 'ms', 'next'], rows, terminal.stdout.columns),
      );
    });
}

function resendCommand(terminal: Terminal): Command {
  const command = new Command('resend')
    .summary('deliver an event again')
    .description(
      'Has an event delivered again to an endpoint, as its owner may: one that the owner may see, of a type that the endpoint gets. A running service delivers it at once.',
    )
    .argument('<endpoint>', "the endpoint's id")
    .argument('<event>', "the event's id, as attempts show it")
    .option('--position <position>', 'its position, as the feed shows it (default: that of its attempts)');
  return withReason(command)
    .addHelpText(
      'after',
      examples(`gift webhooks resend ${ENDPOINT} 2f0b7a52-6c0e-4b1f-9a40-0c7d1f6e8b11 --reason "the receiver lost it"`),
    )
    .action(async (id: string, event_id: string, flags: RequestFlags & { readonly position?: string }) => {
      const { position } = flags;
      await request(terminal, 'resend', { endpoint: id, event: event_id, position }, flags, async (opened, endpoint) =>
        resendRequest({ events: opened.events, feed: opened.models.feed, records: opened.store.records }, endpoint, {
          event_id,
          position,
        }),
      );
    });
}

function recoverCommand(terminal: Terminal): Command {
  const command = new Command('recover')
    .summary('deliver what was not delivered')
    .description(
      'Has all events since a time delivered to an endpoint, as its owner may: those that were given up, that came while it was disabled, or that wait for their next attempt. A running service delivers them at once.',
    )
    .argument('<endpoint>', "the endpoint's id")
    .requiredOption('--since <time>', 'what happened from then on, such as 2026-05-04T12:30:00Z');
  return withReason(command)
    .addHelpText(
      'after',
      examples(`gift webhooks recover ${ENDPOINT} --since 2026-05-04T12:30:00Z --reason "the receiver was down"`),
    )
    .action(async (id: string, flags: RequestFlags & { readonly since: string }) => {
      const { since } = flags;
      await request(terminal, 'recover', { endpoint: id, since }, flags, async () =>
        recoverRequest(since, currentTime()),
      );
    });
}

const withReason = (command: Command): Command =>
  outputOptions(command.option('--reason <text>', 'why; kept with the record of who did what'));

/** Requests a delivery: who did it is in the event, the reason in the access record. */
async function request(
  terminal: Terminal,
  word: 'resend' | 'recover',
  asked: Readonly<Record<string, string | undefined>> & { readonly endpoint: string },
  { reason: given, json }: RequestFlags,
  make: (opened: OpenedStores, endpoint: OwnEndpoint) => Promise<WebhookResendRequested | WebhookRecoverRequested>,
): Promise<void> {
  const reason = neededReason(given, word);
  const { endpoint: id } = asked;
  const done = await withStores(terminal, async (opened) => {
    const { events } = opened;
    await refuseWhileHeld(events);
    const context = commandLineContext();
    const endpoint = await openEndpoint({ events }, id, context);
    const requested = await make(opened, endpoint);
    await requestOwnDelivery({ events }, endpoint, requested, context);
    await cliAccess(events).shown(`gift webhooks ${word}`, asked, { personal: false, reason }, 1);
    const { position: _, ...data } = requested.data as WebhookResendRequested['data'];
    return { endpoint_id: id, ...data };
  }).catch((error: unknown) => {
    throw error instanceof DeliveryFault
      ? usageFailure(`${error.field === 'event_id' ? 'the event' : `--${error.field}`} ${error.message}`)
      : throwDescribed(error);
  });
  await writeLines(terminal.stdout, [
    json === true
      ? jsonLine(done)
      : `endpoint ${id}: requested; a running service delivers it (gift webhooks attempts ${id})`,
  ]);
}
