/** `gift trigger`: makes an event happen in a sandbox (docs/api/sandbox.md#trigger). */
import { Command } from 'commander';
import { ticks } from '../../lib/world.js';
import { ALL_ENTRY_TYPES, type EntryType } from '../../projections/feed/entryTypes.js';
import { examples, jsonText, tableLines } from '../output.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { type Access, accessOf, accessOptions, type Api, described, openApi } from './api.js';
import { openSandbox, SCENARIOS } from './scenarios.js';

const NEEDED = ['url', 'client', 'clientSecret', 'username', 'password', 'till', 'tillPassword'] as const;
/** How long the event is waited for: what follows a purchase takes a moment, what is due looks every few seconds. */
const WAIT_MS = 60_000;
const POLL_S = 10;

interface TriggerFlags extends Access {
  readonly list?: true;
  readonly product?: string;
}

export function triggerCommand(terminal: Terminal): Command {
  const command = new Command('trigger')
    .summary('make an event happen in a sandbox')
    .description(
      `For app developers: buys, redeems, declines, disputes or lets expire what is needed for an event, in a sandbox, by the same routes that apps use, and shows the event. It really happens: webhooks and the feed have it, and what came before it, too.
Some events want the clock to move: that of the whole sandbox, for all who use it.`,
    )
    .argument('[event]', 'a type of event, such as gift.redeemed')
    .option('--list', 'show the events, and what is done for each')
    .option('--product <id>', 'what is bought; default: a cheap product with vouchers, of the merchant of --till');
  return accessOptions(command, NEEDED)
    .addHelpText(
      'after',
      `
The variables save typing: export GIFT_URL, GIFT_CLIENT, GIFT_CLIENT_SECRET, GIFT_USERNAME and GIFT_PASSWORD once.
${examples('gift trigger --list', 'gift trigger gift.redeemed --client demo-app --username ada@demo.example')}`,
    )
    .action(async (event: string | undefined, flags: TriggerFlags) => {
      if (flags.list === true) return writeLines(terminal.stdout, listed(terminal));
      if (event === undefined || !isType(event))
        throw usageFailure(`${event ?? 'an event is missing: it'} is none of the types of events: gift trigger --list`);
      await trigger(terminal, event, await accessOf(terminal, flags, NEEDED), flags.product);
    });
}

const isType = (text: string): text is EntryType => (ALL_ENTRY_TYPES as readonly string[]).includes(text);

function listed({ stdout }: Terminal): string[] {
  const rows = ALL_ENTRY_TYPES.map((type) => {
    const scenario = SCENARIOS[type];
    if ('why' in scenario) return [type, scenario.why];
    return [type, scenario.movesClock === true ? `${scenario.what}; moves the sandbox's clock` : scenario.what];
  });
  return tableLines(['event', 'what is done'], rows, stdout.columns);
}

async function trigger(
  terminal: Terminal,
  type: EntryType,
  access: Access,
  product: string | undefined,
): Promise<void> {
  const scenario = SCENARIOS[type];
  if ('why' in scenario) throw new CommandFailure(`${type} can't be made by an app: ${scenario.why}`);
  const api = openApi(access, terminal.signal);
  await refuseUnlessSandbox(api, access.url ?? '');
  const end = await feed(api, { after: 'end' });
  const sandbox = openSandbox(api, {
    hasTill: access.till !== undefined,
    ...(product === undefined ? {} : { product }),
  });
  const transactionId = await scenario.make(sandbox);
  const event = await found(terminal, api, type, transactionId, end.next);
  await writeLines(terminal.stdout, [jsonText(event)]);
}

/** Elsewhere a purchase would cost money. @throws CommandFailure */
async function refuseUnlessSandbox(api: Api, url: string): Promise<void> {
  const answer = await api.call('GET', '/sandbox/clock', { as: 'client' });
  if (answer.status === 404) throw new CommandFailure(`${url} is no sandbox: nothing was bought`);
  if (answer.status !== 200)
    throw new CommandFailure(`${url} could not be asked whether it is a sandbox: ${described(answer)}`);
}

interface Page {
  readonly data: readonly { readonly data: { readonly transaction_id: string } }[];
  readonly next: string | null;
}

async function feed(api: Api, query: Readonly<Record<string, string>>): Promise<Page> {
  const answer = await api.call('GET', `/api/v2/events?${new URLSearchParams(query).toString()}`, { as: 'client' });
  if (answer.status !== 200) throw new CommandFailure(`the feed can't be read: ${described(answer)}`);
  return answer.body as unknown as Page;
}

/** The event of the transaction, once the feed has it. @throws CommandFailure where it does not come */
async function found(
  { signal }: Terminal,
  api: Api,
  type: EntryType,
  transactionId: string,
  end: string | null,
): Promise<object> {
  const until = ticks() + WAIT_MS;
  let after = end;
  while (ticks() < until && !signal.aborted) {
    const page = await feed(api, { 'types[]': type, wait: String(POLL_S), ...(after === null ? {} : { after }) });
    const event = page.data.find(({ data }) => data.transaction_id === transactionId);
    if (event !== undefined) return event;
    after = page.next;
  }
  if (signal.aborted) throw interrupted(`interrupted; transaction ${transactionId} was made`);
  throw new CommandFailure(
    `transaction ${transactionId} was made, but no ${type} came within ${WAIT_MS / 1_000} s: a setting may be against it, such as REMINDER_DAYS`,
  );
}
