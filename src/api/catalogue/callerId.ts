import type { Principal } from '../pipeline/principal.js';

/** `undefined` for a client, which sees the products visible to everyone (docs/api/catalogue.md#sellable-products). */
export function callerId(principal: Principal): string | undefined {
  return principal.kind === 'user' ? principal.user.id : undefined;
}
