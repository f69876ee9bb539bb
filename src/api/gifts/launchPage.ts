/** A gift's `launch_url` (docs/api/gifts.md#launch-page). Needs no token; shows neither message nor names. */
import escapeHtml from 'escape-html';
import { isExpired } from '../../domain/gift/decisions.js';
import { type ErrorAnswer, HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import type { GiftRouteDeps } from './deps.js';
import { expiryOf, findGift, type JoinedGift } from '../../entities/joinedGift.js';

export interface LaunchPageDeps extends GiftRouteDeps {
  /** Address of the app; absent: the page has no link to it. */
  readonly appUrl?: string | undefined;
}

export function launchPageRoutes(deps: LaunchPageDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/g/:giftId',
      operation: 'showLaunchPage',
      summary: 'The page behind a launch_url',
      description: 'For people, without a token: product, brand, expiry, and a link to the app.',
      tag: 'Gifts',
      caller: 'none',
      params: { giftId: "The gift's shortcode." },
      giftParam: 'giftId',
      noStore: true,
      answers: [{ status: 200, description: 'The page.', contentType: 'text/html' }],
      errorPage: (error) => ({ headers: PAGE_HEADERS, body: errorPage(error) }),
      async open(early) {
        const joined = await findGift(deps, early.params['giftId'] ?? '', early.position);
        if (joined === undefined || !early.byShortcode) throw new HttpError('gift_not_found');
        return async () => ({
          body: page(joined, deps),
          headers: PAGE_HEADERS,
        });
      },
    },
  ];
}

/** Apps claim links by their path, so `appUrl` stays exactly as set; the gift is a parameter. */
function appLink(appUrl: string, shortcode: string): string {
  const link = new URL(appUrl);
  link.searchParams.set('gift', shortcode);
  return link.href;
}

function stateLine(joined: JoinedGift, now: string): string {
  const { gift, transaction } = joined;
  if (transaction.payment === 'declined' || gift.cancelled === true) return 'This gift was cancelled.';
  if (transaction.payment === 'pending') return 'This gift is not paid for yet.';
  if (gift.redemption?.redeemed === true) return 'This gift has been used.';
  const expiresOn = expiryOf(joined);
  if (isExpired(expiresOn, now)) return 'This gift has expired.';
  return `Valid until the end of ${expiresOn} (UTC).`;
}

function page(joined: JoinedGift, deps: LaunchPageDeps): string {
  const catalogue = deps.catalogue.current();
  const product = catalogue.products.get(joined.transaction.product_id);
  const brand = catalogue.brandOf(joined.transaction);
  const link =
    deps.appUrl === undefined
      ? ''
      : `<p><a rel="noreferrer" href="${escapeHtml(appLink(deps.appUrl, deps.shortcodes.of(joined.id)))}">Open it in the app</a></p>`;
  return htmlPage(`<p>A gift for you</p>
<h1>${escapeHtml(product?.name ?? 'A gift')}</h1>
<p>${escapeHtml(brand?.name ?? '')}</p>
<p>${escapeHtml(stateLine(joined, deps.now()))}</p>
${link}`);
}

function errorPage({ code, headers }: Pick<ErrorAnswer, 'code' | 'headers'>): string {
  if (code === 'gift_not_found')
    return htmlPage('<h1>There is no such gift</h1>\n<p>Open the link once more: a part of it may be missing.</p>');
  if (code === 'too_many_requests') {
    const minutes = Math.ceil(Number(headers['Retry-After']) / 60);
    const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`;
    return htmlPage(`<h1>Too many links were tried</h1>\n<p>Gifts can be opened from here again in ${wait}.</p>`);
  }
  return htmlPage('<h1>The gift can’t be shown for now</h1>\n<p>Try again in a moment.</p>');
}

const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Robots-Tag': 'noindex, nofollow',
  'Referrer-Policy': 'no-referrer',
} as const;

/** The frame of a page: no script, no index, no referrer. @param content HTML */
function htmlPage(content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>A gift for you</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; background: #faf7f2; color: #222 }
main { max-width: 26rem; margin: 1rem; padding: 2rem; background: #fff; border-radius: 1rem; box-shadow: 0 .5rem 2rem #0001; text-align: center }
h1 { margin: 0 0 .25rem; font-size: 1.6rem }
a { display: inline-block; padding: .6rem 1.4rem; border-radius: 2rem; background: #b3263a; color: #fff; text-decoration: none }
</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`;
}
