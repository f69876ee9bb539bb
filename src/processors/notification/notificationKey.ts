export const notificationKey = (giftId: string): string => `notify/${giftId}`;
