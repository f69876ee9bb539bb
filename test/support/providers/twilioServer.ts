/**
 * Twilio's Messages resource as far as it is used, from its public description
 * (https://www.twilio.com/docs/messaging/api/message-resource): messages are made and listed by number, test numbers
 * fail, nothing is idempotent. Its ledger is what was sent.
 */
import { randomBytes } from 'node:crypto';
import { type Answered, type Requested, openStandIn, type StandIn } from './standIn.js';

/** A message, as the API shows it. Dates are RFC 2822. */
export interface TwilioMessage {
  readonly sid: string;
  readonly account_sid: string;
  readonly to: string;
  readonly from: string | null;
  readonly messaging_service_sid: string | null;
  readonly body: string;
  status: 'queued' | 'sent' | 'delivered' | 'undelivered' | 'failed';
  error_code: number | null;
  date_created: string;
}

/** The stand-in and its ledger. */
export interface TwilioServer extends StandIn {
  readonly accountSid: string;
  readonly authToken: string;
  readonly messages: TwilioMessage[];
  /** How many messages hold the text. */
  sent(text: string): number;
}

/** What test numbers answer (https://www.twilio.com/docs/iam/test-credentials), and some errors of real ones. */
const REFUSED: Readonly<Record<string, number>> = {
  '+15005550001': 21211,
  '+15005550002': 21612,
  '+15005550003': 21408,
  '+15005550004': 21610,
  '+15005550009': 21614,
  '+15005550007': 21606,
};

const failure = (status: number, code: number, message: string): Answered => ({
  status,
  body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
});

/** Opens it. */
export async function openTwilioServer(): Promise<TwilioServer> {
  const accountSid = `AC${randomBytes(16).toString('hex')}`;
  const authToken = randomBytes(16).toString('hex');
  const authorization = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`;
  const path = `/2010-04-01/Accounts/${accountSid}/Messages.json`;
  const messages: TwilioMessage[] = [];

  const create = (form: URLSearchParams): Answered => {
    const to = form.get('To') ?? '';
    const body = form.get('Body') ?? '';
    if (!/^\+\d{8,15}$/.test(to)) return failure(400, 21211, `The 'To' number ${to} is not a valid phone number.`);
    const refused = REFUSED[to];
    if (refused !== undefined) return failure(400, refused, `The number ${to} can't be sent to`);
    if (!form.has('From') && !form.has('MessagingServiceSid'))
      return failure(400, 21603, "A 'From' phone number is required.");
    if (body.length > 1_600)
      return failure(400, 21617, 'The concatenated message body exceeds the 1600 character limit');
    const message: TwilioMessage = {
      sid: `SM${randomBytes(16).toString('hex')}`,
      account_sid: accountSid,
      to,
      from: form.get('From'),
      messaging_service_sid: form.get('MessagingServiceSid'),
      body,
      status: 'queued',
      error_code: null,
      date_created: new Date().toUTCString(),
    };
    messages.unshift(message);
    return { status: 201, body: shown(message) };
  };

  const list = (query: URLSearchParams): Answered => {
    const size = Number(query.get('PageSize') ?? 50);
    const page = Number(query.get('Page') ?? 0);
    const found = messages.filter(({ to }) => query.get('To') === null || to === query.get('To'));
    const at = (n: number): string =>
      `${path}?${new URLSearchParams({ To: query.get('To') ?? '', PageSize: String(size), Page: String(n) }).toString()}`;
    const rest = found.length > (page + 1) * size;
    const slice = found.slice(page * size, (page + 1) * size).map(shown);
    return {
      status: 200,
      body: {
        messages: slice,
        page,
        page_size: size,
        start: page * size,
        end: page * size + slice.length - 1,
        uri: at(page),
        first_page_uri: at(0),
        previous_page_uri: null,
        next_page_uri: rest ? at(page + 1) : null,
      },
    };
  };

  const handle = (requested: Requested): Answered => {
    if (requested.headers.authorization !== authorization) return failure(401, 20003, 'Authenticate');
    if (requested.path !== path) return failure(404, 20404, `The requested resource ${requested.path} was not found`);
    return requested.method === 'POST' ? create(new URLSearchParams(requested.body)) : list(requested.query);
  };

  const standIn = await openStandIn({
    handle,
    error: failure(500, 20500, 'An internal server error has occurred'),
    limited: failure(429, 20429, 'Too Many Requests'),
  });
  return Object.assign(standIn, {
    accountSid,
    authToken,
    messages,
    sent: (text: string) => messages.filter(({ body }) => body.includes(text)).length,
  });
}

function shown(message: TwilioMessage): object {
  return {
    ...message,
    api_version: '2010-04-01',
    date_sent: message.status === 'queued' ? null : message.date_created,
    date_updated: message.date_created,
    direction: 'outbound-api',
    error_message: null,
    num_media: '0',
    num_segments: '1',
    price: null,
    price_unit: 'USD',
    subresource_uris: {},
    uri: `/2010-04-01/Accounts/${message.account_sid}/Messages/${message.sid}.json`,
  };
}
