import type { Caller } from '../../../ports/eventStore.js';

/** System user that appends the events of the tree. */
export const TREE_USER: Caller = { user: 'system:tree' };
