/** The caller of a request, looked up again for each request (docs/api/tokens.md#sessions). */
import type { Role } from '../../domain/account.js';
import type { UserDocument } from '../../projections/accounts.js';

export type Principal =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'client'; readonly clientId: string; readonly sessionId: string }
  | {
      readonly kind: 'user';
      readonly clientId: string;
      readonly sessionId: string;
      readonly user: UserDocument;
      /** Present where the client serves no staff. */
      readonly staff?: false;
    };

export const isStaffClient = (principal: Principal): boolean => principal.kind === 'user' && principal.staff !== false;

/** Roles that the caller may use through its client; `user.roles` has the user's roles whatever the client. */
export function rolesOf(principal: Principal): readonly Role[] {
  return principal.kind === 'user' && isStaffClient(principal) ? principal.user.roles : [];
}
