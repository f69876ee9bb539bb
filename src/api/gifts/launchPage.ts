/** A gift's `launch_url` (docs/api/gifts.md#launch-page). Needs no token; shows neither message nor names. */
import escapeHtml from 'escape-html';
import { isExpired } from '../../domain/gift/decisions.js';
import { type ErrorAnswer, HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import type { GiftRouteDeps } from './deps.js';
import { htmlPage, PAGE_HEADERS } from './htmlPage.js';
import { expiryOf, type JoinedGift, findGift } from '../../entities/joinedGift.js';

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
      errors: [],
      errorPage: (error) => ({ headers: PAGE_HEADERS, body: errorPage(error) }),
      async open(early) {
        const joined = await findGift(deps, early.params['giftId'] ?? '', early.position);
        if (joined === undefined || !early.byShortcode) throw new HttpError('gift_not_found');
        return async () => ({
          status: 200,
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
