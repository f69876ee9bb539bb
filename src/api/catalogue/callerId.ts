import type { Principal } from '../auth/principal.js';

/** The calling user's id; `undefined` for a client, which sees what is visible to everyone (decisions 5). */
export function callerId(principal: Principal): string | undefined {
  return principal.kind === 'user' ? principal.user.id : undefined;
}
