import { markOf } from "../lib/states";
import { Icon } from "./Icon";
import { isIcon } from "./sprite";

interface Props {
  status: string;
  size?: 14 | 16 | 18;
}

export function StateIcon({ status, size = 14 }: Props) {
  const { icon, colour } = markOf(status);
  return <Icon name={isIcon(icon) ? icon : "dash"} size={size} className={`c-${colour}`} />;
}
