/**
 * Data folders for benches: a catalogue and accounts whose ids are those of the generated history, and tokens to call
 * with.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkpointName } from '../../src/runtime/readmodels/projection.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { GIFT } from './command.js';
import { type HistoryGift, generateHistory } from './history.js';
import type { LoadRequest } from './load.js';

const PRODUCTS = 80;
const BRANDS = 15;
const STORES = 60;
const MERCHANTS = 12;
const USERS = 1_000;
const PASSWORD = 'a password for benches only';
const SECRET = 'a secret for benches only';

const range = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** The import file: what the history names, one till `till{n}` a merchant `m{n}`, and the client `bench`. */
function catalogue(): object {
  return {
    integrations: [{ id: '1', name: 'Scanned at the till' }],
    merchants: range(MERCHANTS, (n) => ({ id: `m${n}`, name: `Merchant ${n}` })),
    brands: range(BRANDS, (n) => ({
      id: `b${n}`,
      name: `Brand ${n}`,
      merchant_id: `m${n % MERCHANTS}`,
      integration_id: '1',
    })),
    stores: range(STORES, (n) => ({
      id: `s${n}`,
      brand_id: `b${n % MERCHANTS}`,
      name: `Store ${n}`,
      longitude: -0.1 - n / 500,
      latitude: 51.5 + n / 500,
    })),
    products: range(PRODUCTS, (n) => ({
      id: `p${n}`,
      brand_id: `b${n % BRANDS}`,
      name: `Product ${n}`,
      sale_price: 250 + n * 25,
    })),
    // Only those that log in have a password of their own to be hashed; hashing a thousand takes a while.
    users: [
      ...range(USERS, (n) => ({
        id: `u${n}`,
        username: `user${n}`,
        ...(n === 0 ? { password: PASSWORD } : { password_hash: UNUSED_HASH }),
      })),
      ...range(MERCHANTS, (n) => ({
        id: `till${n}`,
        username: `till${n}`,
        password: PASSWORD,
        merchant_id: `m${n}`,
        permissions: ['redeem', 'unredeem'],
      })),
    ],
    clients: [{ id: 'bench', secret: SECRET, name: 'Bench' }],
    payment_methods: range(USERS, (n) => ({ reference: `card_${n}`, kind: 'card', users: [`u${n}`] })),
  };
}

/** Of a password that nobody knows. */
const UNUSED_HASH = '$argon2id$v=19$m=19456,t=2,p=1$8x4NINpyMwMjGNlLSI/XGg$J9xZ3YnAxbkmNIkLlgafTSk7FX9+lMq4ZGbmylIjlaY';

/** A data folder with its gifts. */
export interface BenchData {
  readonly dir: string;
  readonly gifts: readonly HistoryGift[];
  readonly events: number;
}

/** An empty folder for one run. */
export const scratch = (name: string): string => mkdtempSync(join(tmpdir(), `gift-bench-${name}-`));

/**
 * The read models of this code: what a kept folder's were made by. Others would be built anew beside what is measured.
 */
const MODELS = PROJECTIONS.map(checkpointName).join(' ');

/**
 * A data folder with a whole history of so many gifts. A folder of `BENCH_DIR` (default: the temporary folder) is kept
 * and used again while the read models are the same, since a million gifts take minutes to make; `fresh` ones are not.
 * `sample`: the number of gifts that are named; default all.
 */
export function historyOf(
  gifts: number,
  options: { readonly fresh?: boolean; readonly sample?: number } = {},
): BenchData {
  const home = process.env['BENCH_DIR'] ?? tmpdir();
  const dir = options.fresh === true ? scratch(String(gifts)) : join(home, `gift-bench-history-${gifts}`);
  const [made, models] = [join(dir, 'bench-gifts.json'), join(dir, 'bench-models.txt')];
  if (!existsSync(models) || readFileSync(models, 'utf8') !== MODELS) {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true });
    process.stderr.write(`making a history of ${gifts} gifts in ${dir} …\n`);
    importCatalogue(dir);
    const history = generateHistory({ dir, gifts, users: USERS, sampleSize: options.sample ?? gifts });
    writeFileSync(made, JSON.stringify({ events: history.events, gifts: history.sample }));
    writeFileSync(models, MODELS);
  }
  return { dir, ...(JSON.parse(readFileSync(made, 'utf8')) as Pick<BenchData, 'events' | 'gifts'>) };
}

/** Bytes of the files in a folder, without those that benches put there. */
export function bytesOf(dir: string): number {
  let bytes = 0;
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && !entry.name.startsWith('bench-')) bytes += statSync(join(entry.parentPath, entry.name)).size;
  return bytes;
}

/** Brings the catalogue and the accounts in. `settings`: further ones, such as where the engines are. */
export function importCatalogue(dir: string, settings: Readonly<Record<string, string>> = {}): void {
  const file = join(dir, 'bench-catalogue.json');
  writeFileSync(file, JSON.stringify(catalogue()));
  execFileSync(process.execPath, [GIFT, 'import', file], {
    env: { PATH: process.env['PATH'], DATA_DIR: dir, ...settings },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** The till whose merchant a gift of this product is valid for, and a location of that merchant. */
export function tillOf({ product_id }: HistoryGift): { readonly username: string; readonly location: string } {
  const merchant = (Number(product_id.slice(1)) % BRANDS) % MERCHANTS;
  return { username: `till${merchant}`, location: `s${merchant}` };
}

/** A gift's look-up by such a till: who only has its id is answered 404. */
export function lookUpOf(gift: HistoryGift, tokens: ReadonlyMap<string, string>): LoadRequest {
  return { path: `/api/v2/gifts/${gift.id}`, headers: bearer(tokens, tillOf(gift).username) };
}

/** A gift's redemption by such a till. */
export function redemptionOf(gift: HistoryGift, tokens: ReadonlyMap<string, string>): LoadRequest {
  const { username, location } = tillOf(gift);
  return {
    path: `/api/v2/gifts/${gift.id}/redemptions`,
    headers: bearer(tokens, username),
    body: JSON.stringify({ location_id: location }),
  };
}

/** A purchase of one gift by `buyer`, for a number of its own; the card is charged by the simulated provider. */
export function purchaseOf(n: number, tokens: ReadonlyMap<string, string>): LoadRequest {
  const purchase = {
    type: 'gift',
    reference: `p${n % PRODUCTS}`,
    message: 'Have one on us!',
    receivers: [{ phone_number: `07400 ${String(n).padStart(6, '0')}` }],
  };
  return {
    path: '/api/v2/transactions',
    headers: bearer(tokens, buyer.username),
    body: JSON.stringify({ payment: { method: 'card', reference: buyer.card }, purchase }),
  };
}

const bearer = (tokens: ReadonlyMap<string, string>, username: string): { readonly Authorization: string } => ({
  Authorization: `Bearer ${tokens.get(username) ?? ''}`,
});

/** Every till's name. */
export const tills = range(MERCHANTS, (n) => `till${n}`);

/** The user who buys; their card is `card_0`. */
export const buyer = { username: 'user0', card: 'card_0' } as const;

/** Logs users in. @returns their access tokens by username */
export async function tokensOf(url: string, usernames: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const grant = async (body: object, authorization?: string): Promise<string> => {
    const headers = {
      'Content-Type': 'application/json',
      ...(authorization === undefined ? {} : { Authorization: `Bearer ${authorization}` }),
    };
    const response = await fetch(`${url}/oauth/token`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (response.status !== 200) throw new Error(`no token: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { readonly access_token: string }).access_token;
  };
  const client = await grant({ grant_type: 'client_credentials', client_id: 'bench', client_secret: SECRET });
  const tokens = new Map<string, string>();
  for (const username of usernames)
    tokens.set(username, await grant({ grant_type: 'password', username, password: PASSWORD }, client));
  return tokens;
}
