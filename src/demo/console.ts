import { wrapped } from '../lib/wrappedText.js';

const MAX_LENGTH = 240;

export interface Exchange {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export interface RequestOptions {
  readonly token?: string;
  readonly body?: object;
  readonly key?: string;
}

export interface DemoClient {
  step(text: string): void;
  note(text: string): void;
  call(method: string, path: string, options?: RequestOptions): Promise<Exchange>;
}

/** Prints requests and answers to people. `columns`: the terminal's width; `undefined`: lines are not broken. */
export function demoClient(url: string, print: (line: string) => void, columns: number | undefined): DemoClient {
  const lines = (text: string, indent: string, first: string): void => {
    for (const line of wrapped(cut(text), columns ?? Number.POSITIVE_INFINITY, indent, first)) print(line);
  };
  const show = (sign: string, text: string): void => lines(text, '     ', sign.padEnd(5));
  let count = 0;
  return {
    step(text) {
      print('');
      lines(text, '   ', `${++count}. `);
    },
    note(text) {
      show('', text);
    },
    async call(method, path, { token, body, key } = {}) {
      const headers: Record<string, string> = {};
      if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
      if (body !== undefined) headers['content-type'] = 'application/json';
      if (key !== undefined) headers['idempotency-key'] = key;
      const keyed = key === undefined ? '' : ` (Idempotency-Key: ${key})`;
      show('   >', `${method} ${path}${keyed}${body === undefined ? '' : ` ${spaced(hidden(body))}`}`);
      const response = await fetch(url + path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const answer = (response.headers.get('content-type') ?? '').includes('json')
        ? (JSON.parse(text) as Record<string, unknown>)
        : { text };
      const replayed = response.headers.get('idempotent-replayed');
      show(
        '   <',
        `${response.status}${replayed === null ? '' : ` (Idempotent-Replayed: ${replayed})`} ${summary(answer)}`,
      );
      return { status: response.status, body: answer };
    },
  };
}

function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH - 1)}…`;
}

/** JSON that can be broken at its spaces. */
export const spaced = (value: object): string => JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ');

/** The body without refresh tokens, which are long and secret. */
function hidden(body: object): object {
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => [key, key === 'refresh_token' ? '…' : (value as unknown)]),
  );
}

function summary(answer: Record<string, unknown>): string {
  if (typeof answer['text'] === 'string')
    return answer['text']
      .replaceAll(/<style>.*?<\/style>/gs, '')
      .replaceAll(/<[^>]*>|\s+/g, ' ')
      .replaceAll(/ +/g, ' ')
      .trim();
  if (typeof answer['access_token'] === 'string')
    return spaced({ token_type: answer['token_type'], expires_in: answer['expires_in'], access_token: '…' });
  if (typeof answer['voucherType'] === 'string') return brief(answer);
  const { data, embedded, ...rest } = answer;
  const parts = [];
  if (Array.isArray(data))
    parts.push(`${data.length} ${data.length === 1 ? 'entry' : 'entries, first'} ${brief(data[0])}`);
  else if (data !== undefined) parts.push(brief(data));
  if (embedded !== undefined && !Array.isArray(embedded)) parts.push(`embedded ${brief(embedded)}`);
  if (parts.length === 0) parts.push(brief(rest));
  return parts.join(' ');
}

const SHOWN = [
  'id',
  'name',
  'shortcode',
  'sale_price',
  'retail',
  'gift_status',
  'status_code',
  'receiver_id',
  'redeemed',
  'location_id',
  'gift_id',
  'error',
  'voucherType',
  'expiresAt',
  'giftId',
  'segments',
  'pins',
];

function brief(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '';
  const shown = Object.entries(value).flatMap(([key, one]: [string, unknown]) => {
    if (Array.isArray(one)) return one.length === 0 ? [] : [`${key}: ${one.length}`];
    return SHOWN.includes(key) ? [`${key}: ${JSON.stringify(one)}`] : [];
  });
  return `{${shown.join(', ')}}`;
}
