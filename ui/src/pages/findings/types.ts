import type { Item } from "../../api/types";

export type Finding = Item<"/findings">;
export type FindingAction = Finding["actions"][number];
export type Subject = Finding["subject"];
