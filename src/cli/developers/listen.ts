/**
 * `gift listen`: the events of the feed, sent to a developer's own server as webhooks are
 * (docs/api/webhooks.md#trying-it).
 */
import { Command } from 'commander';
import { openDevelopersSender } from '../../deliveries/index.js';
import { webhookUrlFault } from '../../domain/webhookUrl.js';
import { pause } from '../../lib/async/pause.js';
import { retryAfterMs } from '../../lib/retryAfter.js';
import { VERSION } from '../../lib/version.js';
import { randomBytes, systemMs } from '../../lib/world.js';
import { examples, printable } from '../output.js';
import { CommandFailure, type Terminal, usageFailure, writeText } from '../terminal.js';
import { type Access, accessOf, accessOptions, type Api, type ApiAnswer, described, openApi } from './api.js';

interface ListenFlags extends Access {
  readonly forwardTo: string;
  readonly from?: string;
  readonly type: readonly string[];
}

interface FeedEvent {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly position: string;
  readonly data: { readonly transaction_id: string; readonly gift_id?: string };
}

const NEEDED = ['url', 'client', 'clientSecret', 'token', 'secret'] as const;
/** Pauses between the attempts to send one event. */
const RETRIES_MS = [1_000, 5_000, 15_000];
/** Pause while nothing listens at the receiver's address, as while a developer starts it again. */
const ABSENT_MS = 1_000;
/** Pauses while the API does not answer; the last one again and again. */
const RECONNECTS_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** How long the API waits for an event, in seconds. */
const WAIT_S = 20;
/** `--from` of the feed's beginning. */
const START = 'start';

export function listenCommand(terminal: Terminal): Command {
  const command = new Command('listen')
    .summary('send the events of the feed to a server of your own, as webhooks')
    .description(
      `For app developers: reads the event feed of the client over HTTP, also that of a hosted sandbox, and sends each event to a server on your machine, signed and with the body that webhooks have. It needs neither a tunnel nor a data folder.
Events are sent one at a time, in the order of the feed. What the server refuses is sent again after 1, 5 and 15 seconds, and then left out. While the server is not there, or the API does not answer, events wait. Ctrl-C ends it.`,
    )
    .requiredOption('--forward-to <address>', 'where each event is sent: http:// or https://')
    .option('--from <cursor>', `only events after this position; ${START}: all; default: only what happens from now on`)
    .option(
      '--type <type>',
      'only events of this type; several, for several types',
      (one, all: string[]) => [...all, one],
      [],
    );
  return accessOptions(command, NEEDED)
    .addHelpText(
      'after',
      examples(
        'gift listen --client demo-app --client-secret demo-app-secret --forward-to http://localhost:4000/hook',
        'GIFT_CLIENT_SECRET=… gift listen --url https://sandbox.example --client my-app --forward-to http://localhost:4000/hook',
      ),
    )
    .action(async (flags: ListenFlags) => {
      const access = await accessOf(terminal, flags, NEEDED);
      const fault = webhookUrlFault(flags.forwardTo, { privateAddresses: true, refusedNetworks: [] });
      if (fault !== undefined) throw usageFailure(`--forward-to ${fault}`);
      const { secret = `whsec_${randomBytes(32).toString('base64')}` } = access;
      if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret))
        throw usageFailure('--secret must be whsec_ and at least 24 bytes in base64');
      await listen(terminal, openApi(access, terminal.signal), flags, secret);
    });
}

/** Sends events until Ctrl-C. */
async function listen(
  { stdout, stderr, signal }: Terminal,
  api: Api,
  { forwardTo, from, type: types }: ListenFlags,
  secret: string,
): Promise<void> {
  const sender = openDevelopersSender(forwardTo, secret, VERSION);
  const say = (text: string): Promise<boolean> => writeText(stdout, `${text}\n`);
  /** Position after which events are still to be sent; `undefined`: all of the feed. */
  let cursor = from === START ? undefined : (from ?? 'end');
  let failures = 0;
  let isListening = false;

  /** Sends one event until it is taken, or was refused often enough. */
  async function forward(event: FeedEvent): Promise<void> {
    const about = `${event.created_at} ${event.type} ${event.data.gift_id ?? event.data.transaction_id}`;
    const message = { id: event.id, body: JSON.stringify(event) };
    let refusals = 0;
    let isAbsent = false;
    while (!signal.aborted) {
      const { became, answer } = await sender.send(message, signal);
      if (became === 'stopped') return;
      if (became === 'absent') {
        if (!isAbsent) stderr.write(`gift: ${forwardTo} is not there (${answer}); events wait until it is\n`);
        isAbsent = true;
        await pause(ABSENT_MS, signal);
        continue;
      }
      const waitMs = became === 'delivered' ? undefined : RETRIES_MS[refusals];
      const then =
        waitMs !== undefined
          ? `; sent again in ${waitMs / 1_000} s`
          : became === 'delivered'
            ? ''
            : `; left out after ${refusals + 1} attempts: --from ${cursor ?? START} begins with it`;
      await say(printable(`${about} → ${answer}${then}`));
      if (waitMs === undefined) return;
      refusals += 1;
      await pause(waitMs, signal);
    }
  }

  /** @throws CommandFailure for an answer that no later one will better */
  async function unanswered(answer: ApiAnswer): Promise<void> {
    if (isListening && answer.status === 422 && answer.headers.get('Error-Field') === 'after') {
      stderr.write('gift: the feed is that of another log by now, as after a reset: from its beginning\n');
      cursor = undefined;
      return;
    }
    const passes = answer.status === 0 || answer.status === 429 || answer.status >= 500;
    if (!passes) throw new CommandFailure(`the feed can't be read: ${described(answer)}${adviceOn(answer.status)}`);
    const waitMs =
      retryAfterMs(answer.headers.get('Retry-After'), systemMs(), 60_000) ??
      RECONNECTS_MS[Math.min(failures, RECONNECTS_MS.length - 1)] ??
      0;
    if (failures === 0)
      stderr.write(`gift: the API does not answer (${described(answer)}); it is tried again until it does\n`);
    failures += 1;
    await pause(waitMs, signal);
  }

  try {
    while (!signal.aborted) {
      const query = new URLSearchParams({ form: 'webhook', limit: '100', wait: String(isListening ? WAIT_S : 0) });
      if (cursor !== undefined) query.set('after', cursor);
      for (const type of types) query.append('types[]', type);
      const answer = await api.call('GET', `/api/v2/events?${query.toString()}`, { as: 'client' });
      if (signal.aborted) break;
      if (answer.status !== 200) {
        await unanswered(answer);
        continue;
      }
      if (failures > 0) stderr.write('gift: the API answers again\n');
      failures = 0;
      const { data, next } = answer.body as { readonly data: readonly FeedEvent[]; readonly next: string | null };
      if (cursor === 'end') cursor = next ?? undefined;
      if (!isListening) {
        await say(`the secret is ${secret}`);
        await say(`events after ${cursor ?? START} go to ${forwardTo}; Ctrl-C ends it`);
        isListening = true;
      }
      for (const event of data) {
        await forward(event);
        if (signal.aborted) break;
        cursor = event.position;
      }
      if (!signal.aborted) cursor = next ?? cursor;
    }
    stderr.write(`gift: ended; --from ${cursor ?? START} goes on from here\n`);
  } finally {
    sender.close();
  }
}

function adviceOn(status: number): string {
  if (status === 401) return ': the token has ended, or is none of this API';
  if (status === 403) return ": use a client, or a token of a merchant's user with the permission webhooks";
  return '';
}
