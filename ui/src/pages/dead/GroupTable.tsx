import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { useMay } from "../../api/session";
import { Bars } from "../../components/Bars";
import { BulkBar } from "../../components/BulkBar";
import { Button } from "../../components/Button";
import { Tag } from "../../components/Facts";
import { Check } from "../../components/Field";
import { Icon } from "../../components/Icon";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { useKeys } from "../../hooks/useKeys";
import { useIsNarrow, useIsPhone, useIsTight } from "../../hooks/useMedia";
import { useSelection } from "../../hooks/useSelection";
import { useUrlState } from "../../hooks/useUrlState";
import { capped, count, plural } from "../../lib/format";
import { reasonWords } from "../../lib/reasons";
import { BulkDialog } from "../executions/bulk/BulkDialog";
import type { Target, Verb } from "../executions/bulk/verbs";
import { cautionsOf } from "./against";
import { Cautions } from "./Cautions";
import css from "./Dead.module.css";
import { type ErrorGroup, filterFor, keyOf, messageOf, targetFor, titleOf } from "./group";
import { Members } from "./Members";

interface Asked {
  verb: Verb;
  target: Target;
  job?: string;
  cautions: readonly string[];
}

// The groups, largest first, each with its replay and its discard.
export function GroupTable({ groups, jobs }: { groups: readonly ErrorGroup[]; jobs: readonly string[] }) {
  const url = useUrlState();
  const isPhone = useIsPhone();
  const isTight = useIsTight();
  const isNarrow = useIsNarrow();
  const selection = useSelection("errors", groups, keyOf);
  const [asked, setAsked] = useState<Asked | null>(null);
  const opened = url.one("group");
  const toggle = (group: ErrorGroup) =>
    url.set({ group: keyOf(group) === opened ? null : keyOf(group) }, { replace: true });
  const ask = async (verb: Verb, of: readonly ErrorGroup[]) => {
    const names = new Set(of.flatMap((group) => group.jobs.map((one) => one.job)));
    const cautions = verb === "replay" ? await cautionsOf(of) : [];
    const job = names.size === 1 ? [...names][0] : undefined;
    setAsked({ verb, target: targetFor(filterFor(of, jobs)), job, cautions });
  };
  const current = groups.find((group) => keyOf(group) === opened);
  useKeys(
    current === undefined ? {} : { r: { does: "replay the open group", run: () => void ask("replay", [current]) } },
  );
  const picked = groups.filter(selection.has);
  const letters = picked.reduce((sum, group) => sum + group.count, 0);
  const shared = (group: ErrorGroup) => ({
    group,
    isOpen: keyOf(group) === opened,
    isTight,
    isNarrow,
    isSelected: selection.has(group),
    onToggle: () => toggle(group),
    onSelect: (isRange: boolean) => selection.toggle(group, isRange),
    onAsk: (verb: Verb) => void ask(verb, [group]),
    members: <Members group={group} filter={filterFor([group], jobs)} />,
  });
  return (
    <>
      {isPhone ? (
        groups.map((group) => <Card key={keyOf(group)} {...shared(group)} />)
      ) : (
        <table className={css.table}>
          <caption className="unseen">Dead letters by error, largest groups first</caption>
          <thead>
            <tr>
              <th style={{ width: 34 }}>
                <Check
                  isBare
                  label="Select all errors"
                  isOn={selection.isAll(groups)}
                  isHalf={selection.count > 0 && !selection.isAll(groups)}
                  onChange={(isOn) => (isOn ? selection.setAll(groups) : selection.clear())}
                />
              </th>
              <th style={{ width: 24, padding: 0 }}>
                <span className="unseen">open</span>
              </th>
              <th className="num" style={{ width: 64 }}>
                letters
              </th>
              <th>error, numbers and ids masked</th>
              <th style={{ width: isNarrow ? 140 : isTight ? 170 : 230 }}>job and place</th>
              {!isTight && <th style={{ width: 136 }}>since first</th>}
              <th className="num" style={{ width: isNarrow ? 104 : 132 }}>
                seen
              </th>
              <th style={{ width: isNarrow ? 96 : 172 }}>
                <span className="unseen">actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <GroupRows key={keyOf(group)} {...shared(group)} />
            ))}
          </tbody>
        </table>
      )}
      <PickedBar picked={picked} letters={letters} onAsk={ask} onClear={selection.clear} />
      {asked !== null && (
        <BulkDialog
          verb={asked.verb}
          target={asked.target}
          job={asked.job}
          isDead
          warning={asked.cautions.length === 0 ? undefined : <Cautions of={asked.cautions} />}
          onClose={() => setAsked(null)}
          onDone={selection.clear}
        />
      )}
    </>
  );
}

interface BarProps {
  picked: readonly ErrorGroup[];
  letters: number;
  onAsk: (verb: Verb, of: readonly ErrorGroup[]) => Promise<void>;
  onClear: () => void;
}

function PickedBar({ picked, letters, onAsk, onClear }: BarProps) {
  const may = useMay();
  const isKnown = picked.every((group) => group.fingerprint !== null) || picked.length === 1;
  return (
    <BulkBar selected={letters} more={<span>in {plural(picked.length, "error")}</span>} onClear={onClear}>
      {may("operate") && isKnown && (
        <>
          <Button onClick={() => void onAsk("replay", picked)}>Replay {count(letters)}…</Button>
          <Button onClick={() => void onAsk("discard", picked)}>Discard {count(letters)}…</Button>
        </>
      )}
    </BulkBar>
  );
}

interface GroupProps {
  group: ErrorGroup;
  isOpen: boolean;
  isTight: boolean;
  isNarrow: boolean;
  isSelected: boolean;
  onToggle: () => void;
  onSelect: (isRange: boolean) => void;
  onAsk: (verb: Verb) => void;
  members: ReactNode;
}

function GroupRows(props: GroupProps) {
  const { group, isOpen, isTight, isNarrow, isSelected, onToggle, onSelect, onAsk, members } = props;
  return (
    <>
      <tr className={isOpen || isSelected ? css.on : ""}>
        <td>
          <Check isBare label="Select the error" isOn={isSelected} onChange={(_, isRange) => onSelect(isRange)} />
        </td>
        <td style={{ padding: 0 }}>
          <button
            type="button"
            className={css.open}
            aria-expanded={isOpen}
            aria-label="Show the letters"
            onClick={onToggle}
          >
            <Icon name={isOpen ? "down" : "right"} />
          </button>
        </td>
        <td className={`num ${css.count}`}>{capped(group.count, group.isCapped)}</td>
        <td>
          <div className="row" style={{ gap: 6 }}>
            <button type="button" className={`${css.name} el`} title={titleOf(group)} onClick={onToggle}>
              {titleOf(group)}
            </button>
            <Age group={group} />
          </div>
          <div className="el mono d2" title={messageOf(group)}>
            {messageOf(group)}
          </div>
        </td>
        <td>
          <Jobs group={group} />
        </td>
        {!isTight && (
          <td>
            <Trend group={group} />
          </td>
        )}
        <td className="num sm d2">
          <div>
            first <Time at={group.firstAt} />
          </div>
          <div>
            last <Time at={group.lastAt} />
          </div>
        </td>
        <td className="num">
          <GroupActions group={group} isOpen={isOpen} isStacked={isNarrow} onAsk={onAsk} />
        </td>
      </tr>
      {isOpen && (
        <tr className={css.members}>
          <td colSpan={isTight ? 7 : 8}>{members}</td>
        </tr>
      )}
    </>
  );
}

function Age({ group }: { group: ErrorGroup }) {
  if (group.isNew) return <Tag>new</Tag>;
  return group.count > 1 ? <Tag>recurring</Tag> : null;
}

function Jobs({ group }: { group: ErrorGroup }) {
  const [first, ...others] = group.jobs;
  return (
    <>
      <div className="el">
        {first !== undefined && (
          <Link href={`/jobs/${first.app}/${first.job}`} className="ln" title={first.job}>
            {first.job}
          </Link>
        )}
        {others.length > 0 && <span className="d3"> and {plural(others.length, "other job")}</span>}
      </div>
      <div className={`sm d3 el ${group.place === null ? "" : "mono"}`} title={group.place ?? group.reason}>
        {group.place ?? reasonWords(group.reason)}
      </div>
    </>
  );
}

function Trend({ group }: { group: ErrorGroup }) {
  const points = group.trend?.points ?? [];
  if (points.length === 0) return null;
  const stacks = points.map((value, index) => ({ key: index, parts: [{ value, colour: "failed" }] }));
  return <Bars stacks={stacks} width={116} height={22} label={`${group.count} since the first one`} />;
}

interface ActionsProps {
  group: ErrorGroup;
  isOpen: boolean;
  // One button below the other, where the row has no room for both.
  isStacked?: boolean;
  onAsk: (verb: Verb) => void;
}

// Replay is what to do next only if the version in force does not have the error.
function GroupActions({ group, isOpen, isStacked = false, onAsk }: ActionsProps) {
  const may = useMay();
  const found = useApi(
    "/errors/{fingerprint}",
    { path: { fingerprint: group.fingerprint ?? "" } },
    { live: ["pulse"], everyMs: 5000, keep: false, enabled: isOpen && group.fingerprint !== null },
  );
  const isPrimary = isOpen && (group.fingerprint === null || found.data?.rollBack === null);
  if (!may("operate")) return null;
  return (
    <span className={isStacked ? css.stacked : css.actions}>
      <Button isSmall kind={isPrimary ? "primary" : "plain"} onClick={() => onAsk("replay")}>
        Replay…
      </Button>
      <Button isSmall onClick={() => onAsk("discard")}>
        Discard…
      </Button>
    </span>
  );
}

function Card({ group, isOpen, isSelected, onToggle, onSelect, onAsk, members }: GroupProps) {
  return (
    <>
      <div className={css.card}>
        <div className="row">
          <Check isBare label="Select the error" isOn={isSelected} onChange={(_, isRange) => onSelect(isRange)} />
          <span className={css.count}>{capped(group.count, group.isCapped)}</span>
          <button type="button" className={`${css.name} gr el`} style={{ textAlign: "left" }} onClick={onToggle}>
            {titleOf(group)}
          </button>
          <Age group={group} />
          <Icon name={isOpen ? "down" : "right"} />
        </div>
        <div className="el mono d2">{messageOf(group)}</div>
        <div className="row">
          <span className="gr el">
            <Jobs group={group} />
          </span>
          <GroupActions group={group} isOpen={isOpen} onAsk={onAsk} />
        </div>
      </div>
      {isOpen && <div>{members}</div>}
    </>
  );
}
