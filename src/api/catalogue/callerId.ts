import type { Principal } from '../auth/principal.js';

/**
 * The calling user's id; `undefined` for a client, which sees what is visible to everyone
 * (docs/decisions.md#sellable-products).
 */
export function callerId(principal: Principal): string | undefined {
  return principal.kind === 'user' ? principal.user.id : undefined;
}
