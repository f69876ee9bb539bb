/** The key of the job that notifies a gift's receiver, for the first time or again. */
export const notificationKey = (giftId: string): string => `notify/${giftId}`;
