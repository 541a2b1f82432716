import type { Item } from "../../api/types";
import { plural } from "../../lib/format";

// How many executions and steps have the event. An event without a subscriber is not an error.
export function Receivers({ event }: { event: Pick<Item<"/events">, "deliveries" | "isDelivered"> }) {
  if (event.deliveries > 0) return <span>{plural(event.deliveries, "execution")}</span>;
  return <span className="d3">{event.isDelivered ? "nothing" : "being delivered"}</span>;
}
