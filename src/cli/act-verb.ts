import { type Act, InvalidValues, type NameOf, type Problem, sayNamesake } from "../acts/act.ts";
import { ENTITIES } from "../acts/entities.ts";
import type { Fields, Readable, Values } from "../acts/fields.ts";
import { findNamesake } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";
import { pickFields } from "../platform/api/fields.ts";
import { type CommandContext, confirmLoss, type Verb, verb } from "./command.ts";
import { Interrupted, UsageError } from "./exit-code.ts";
import { optionOf } from "./field-option.ts";
import { formatSecret } from "./format.ts";
import { flag, type OptionOf, type OptionProblems, option, required, YES } from "./options.ts";
import { NO_PROGRESS } from "./progress.ts";

type Given = Record<string, unknown>;

/** What a command adds to an act: options, files, texts, and what the act needs from its process. */
export interface CommandFace<Result extends object = object, Deps extends object = object> {
  options?: Record<string, OptionOf<unknown>>;
  /** Describes options that are valid alone but break a rule together. Returns null if there is no such problem. */
  findProblem?(options: Given): string | null;
  /** How the command line names the act's entity, if not by its id. */
  target?: { argument: string; find(ctx: CommandContext, options: Given, argument: string): Promise<string> };
  /** Runs the act with its dependencies. Returns the act's result, and notes for the user. */
  around?(
    ctx: CommandContext,
    options: Given,
    perform: (deps: Deps) => Promise<Result>,
  ): Promise<{ result: Result; notes?: readonly (string | false | undefined)[] }>;
}

const FORCE = flag("do not ask when the name is already in use");

/** Builds a command's verb for an act. */
export function verbOf<F extends Fields, Result extends object, Deps extends object>(
  act: Act<F, Result, Deps>,
  face: CommandFace<Result, Deps> = {},
): Record<string, Verb> {
  const { on, creates, mayStandAlone, confirm, asksNamesake, title, about } = act;
  const parent = on !== null && creates !== undefined ? ENTITIES[on].option : null;
  const argument = on === null || parent !== null ? "" : ` ${face.target?.argument ?? "<id>"}`;
  const parentOption = mayStandAlone ? option("<id>", `its ${on}`) : required("<id>", `the ${on} that it belongs to`);
  const text = about ?? "";
  const define = verb<Record<string, OptionOf<unknown>>>({
    description: `${title.charAt(0).toLowerCase()}${title.slice(1)}${text && `. ${text}`}`,
    options: {
      ...(parent !== null && { [parent]: parentOption }),
      ...optionsOf(act.fields),
      ...face.options,
      ...(asksNamesake && { force: FORCE }),
      ...(confirm && { yes: YES }),
    },
    ...(act.help !== undefined && { help: act.help }),
    examples: act.examples,
    findFurtherProblems(options, problems) {
      const found: Problem[] = [];
      const values = valuesOf(act.fields, options, problems);
      act.rules?.(values, (field, say) => found.push({ field, say }));
      const ofFace = problems.size === 0 ? (face.findProblem?.(options) ?? null) : null;
      const ofAct = found.length === 0 ? null : new InvalidValues(found, optionNames(act.fields)).message;
      return [ofAct, ofFace].filter((one) => one !== null);
    },
    async run(ctx, options, ...args) {
      const values = valuesOf(act.fields, options) as Values<F>;
      const given = parent === null ? (args[0] ?? "") : String(options[parent] ?? "");
      if (asksNamesake) await confirmName(ctx, parent === null ? null : given, String(values.name), options.force);
      const id = (await face.target?.find(ctx, options, given)) ?? given;
      const loss = await confirm?.loss(ctx, face.target ? given : id, values);
      if (loss) await confirmLoss(ctx, options.yes === true ? true : undefined, loss);
      const perform = (deps: Deps) => performAct(ctx, act, deps, id, values);
      const { result, notes = [] } = await (face.around?.(ctx, options, perform) ??
        perform({} as Deps).then((done) => ({ result: done, notes: [] })));
      const secret = act.secret?.(result);
      const lines = [act.said(result, values, id), secret && formatSecret(secret), ...notes].filter(Boolean);
      ctx.print(act.result === undefined ? result : pickFields(act.result, result as never), () => lines.join("\n"));
      const next = act.next?.(result, values, id);
      if (next !== undefined) ctx.next(next);
    },
  });
  return { [`${act.name.split(" ")[1]}${argument}`.trimEnd()]: define };
}

/** Runs an act and shows its progress on the terminal. Explains errors in the words of commands. */
async function performAct<F extends Fields, Result extends object, Deps extends object>(
  ctx: CommandContext,
  act: Act<F, Result, Deps>,
  deps: Deps,
  id: string,
  values: Values<F>,
): Promise<Result> {
  const { progress: words, partly } = act;
  let progress = NO_PROGRESS;
  let reached: object | undefined;
  try {
    return await act.run({ ...ctx, ...deps }, id, values, (done, total, soFar) => {
      reached = soFar;
      if (progress === NO_PROGRESS && words !== undefined) progress = ctx.progress(words.doing, words.of, total);
      progress.advance(done);
      ctx.signal.throwIfAborted();
    });
  } catch (error) {
    progress.end();
    if (partly !== undefined && reached !== undefined) process.stderr.write(`${partly(reached as Result)}\n`);
    if (error instanceof Interrupted && partly === undefined && words !== undefined) {
      error.message = `Interrupted. Nothing was ${words.done}.`;
    }
    throw error instanceof InvalidValues ? explainProblems(error, act.fields) : error;
  }
}

/** Returns an error for invalid values: a refusal if all are past times that no option permits, else a usage error. */
export function explainProblems({ problems }: InvalidValues, fields: Fields): Error {
  const nameOf = optionNames(fields);
  const named = new InvalidValues(problems, nameOf);
  if (!problems.every(({ isPast }) => isPast)) return new UsageError(named.message);
  return "mayBePast" in fields ? new UsageError(`${named.message} ${nameOf("mayBePast")} accepts it.`) : named;
}

/**
 * Asks for confirmation before an organization, brand or product gets a name that is already in use. Without a
 * terminal, only warns. Neither asks nor warns with `--force` or `--json`, because scripts may reuse a name.
 */
async function confirmName(ctx: CommandContext, parentId: string | null, name: string, force: unknown): Promise<void> {
  const namesake = force ? null : await findNamesake(ctx.pool, { parentId, name });
  if (namesake === null) return;
  const found = sayNamesake(namesake, name);
  const answer = await ctx.confirm(`${found} Create another one?`);
  if (answer === false) throw new AppError("invalid_request", "Nothing was created.");
  if (answer === null) ctx.warn(`${found} Another one is created.`);
}

const toOption = (key: string) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

const optionNames =
  (fields: Fields): NameOf =>
  (name) => {
    const { option: own = name, flags } = fields[name] ?? {};
    return flags === undefined ? toOption(own) : Object.keys(flags).map(toOption).join(" or ");
  };

function optionsOf(fields: Fields): Record<string, OptionOf<unknown>> {
  const offered = Object.entries(fields).filter(([, { onlyFor }]) => onlyFor !== "programs");
  const options = offered.flatMap(([name, field]): [string, OptionOf<unknown>][] =>
    field.flags === undefined
      ? [[field.option ?? name, optionOf(field)]]
      : Object.entries(field.flags).map(([value, about]) => [value, flag(about)]),
  );
  return Object.fromEntries(options);
}

/** The values of an act's fields, from a command's options. A value with a problem is undefined. */
function valuesOf<F extends Fields>(fields: F, options: Given, problems?: OptionProblems): Readable<F> {
  const values = Object.entries(fields).map(([name, { option: own = name, flags, initial }]) => {
    if (flags !== undefined) return [name, Object.keys(flags).filter((value) => options[value] === true)];
    return [name, problems?.has(own) ? undefined : (options[own] ?? initial)];
  });
  return Object.fromEntries(values) as Readable<F>;
}
