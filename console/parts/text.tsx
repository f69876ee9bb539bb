/** Values as people read them. */
import { Link } from 'wouter-preact';

const MONEY = new Intl.NumberFormat('en-GB', { style: 'currency', currency: 'GBP' });
const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const COUNT = new Intl.NumberFormat('en-GB');

/** The reader's own time zone, in which all times are shown. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const count = (value: number): string => COUNT.format(value);

export const pounds = (pence: number): string => MONEY.format(pence / 100);

/** `GiftRedeemed` and `gift_status` as words. */
export function words(name: string): string {
  const spaced = name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** A time of the service (ISO 8601, UTC) in the reader's time zone; the exact one as its title. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (at === null || at === undefined) return <>–</>;
  return (
    <time dateTime={at} title={at}>
      {TIME.format(new Date(at))}
    </time>
  );
}

export const giftPath = (id: string): string => `/gifts/${encodeURIComponent(id)}`;
export const transactionPath = (id: string): string => `/transactions/${encodeURIComponent(id)}`;
export const parkedPath = (id: string): string => `/parked/${encodeURIComponent(id)}`;
export const tracePath = (requestId: string): string => `/log/trace/${encodeURIComponent(requestId)}`;
export const personPath = (id: string): string => `/people/${encodeURIComponent(id)}`;

/** An id that leads to its page. */
export function Id({ of, to }: { readonly of: string; readonly to: (id: string) => string }) {
  return (
    <Link class="id" href={to(of)}>
      {of}
    </Link>
  );
}

/** How long ago, in one unit. @param seconds not negative */
export function duration(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
  ] as const;
  const [unit, size] = units.find(([, one]) => seconds >= one) ?? ['s', 1];
  return `${Math.round(seconds / size)} ${unit}`;
}

/**
 * Attributes of a field for ids, names and numbers. A phone's keyboard would begin them with a capital letter, or put
 * another word in their place: then nothing is found that is there. `autoCorrect` so that Preact sets the attribute: the
 * property takes no text.
 */
export const AS_TYPED = { autocomplete: 'off', autocapitalize: 'none', autoCorrect: 'off', spellcheck: false } as const;
