import { messageOf, type SlotView } from '@svc/core'
import type { TeamDefinition, WorkflowProblem } from '@svc/core/contracts'
import { formProblems, type AvailableNames, nameProblems } from './definition.ts'
import { teamInvalid, teamUnknown } from './errors.ts'
import type { TeamFile, TeamFiles } from './files.ts'

/** A team with its problems. */
export interface LoadedTeam {
  readonly name: string
  readonly source: string
  readonly definition: TeamDefinition
  readonly problems: readonly WorkflowProblem[]
}

/** A file without a valid team. */
interface Broken {
  readonly name: string
  readonly source: string
  readonly problems: readonly WorkflowProblem[]
}

export interface TeamLibraryOptions {
  readonly slot: SlotView<TeamDefinition>
  readonly files: TeamFiles
  readonly known: AvailableNames
  /** Adds a team to the slot and returns a function that removes it. Throws NAME_TAKEN. */
  readonly add: (name: string, definition: TeamDefinition) => () => void
}

interface Added {
  readonly file: TeamFile
  readonly remove: () => void
}

/** All teams. Teams in files are added to the slot at each look, so that readers of the slot see all teams. */
export class TeamLibrary {
  readonly #parts: TeamLibraryOptions
  readonly #added = new Map<string, Added>()
  #broken: readonly Broken[] = []
  #looking: Promise<void> = Promise.resolve()

  constructor(parts: TeamLibraryOptions) {
    this.#parts = parts
  }

  /** Reads changed files. Calls run one after the other. */
  look(): Promise<void> {
    this.#looking = this.#looking.catch(() => {}).then(async () => this.#take(await this.#parts.files.all()))
    return this.#looking
  }

  async all(): Promise<readonly (LoadedTeam | Broken)[]> {
    await this.look()
    const teams = this.#parts.slot.entries().map(([name, definition]) => this.#known(name, definition))
    return [...teams, ...this.#broken].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** A valid team. Throws TEAM_UNKNOWN, TEAM_INVALID. */
  async ready(name: string): Promise<LoadedTeam> {
    const known = await this.find(name)
    if (known.problems.length > 0) throw teamInvalid(name, known.problems)
    return known
  }

  /** Finds a team by name. Throws TEAM_UNKNOWN, and TEAM_INVALID for a malformed file. */
  async find(name: string): Promise<LoadedTeam> {
    await this.look()
    const definition = this.#parts.slot.get(name)
    if (definition) return this.#known(name, definition)
    const broken = this.#broken.find(item => item.name === name)
    throw broken ? teamInvalid(name, broken.problems) : teamUnknown(name, this.#parts.slot.names())
  }

  #known(name: string, definition: TeamDefinition): LoadedTeam {
    const file = this.#added.get(name)?.file
    const source = file?.source ?? this.#parts.slot.owner?.(name) ?? 'a plugin'
    const form = file ? [] : [...formProblems(definition), ...nameOf(name, definition)]
    const problems = form.length > 0 ? form : nameProblems(definition, this.#parts.known)
    return { name, source, definition, problems: file ? placed(file, problems) : problems }
  }

  #take(files: readonly TeamFile[]): void {
    for (const [name, { file, remove }] of this.#added)
      if (!files.includes(file)) {
        remove()
        this.#added.delete(name)
      }
    const there = new Set([...this.#added.values()].map(({ file }) => file))
    this.#broken = files.filter(file => !there.has(file)).flatMap(file => this.#takeOne(file))
  }

  #takeOne(file: TeamFile): Broken[] {
    const definition = named(file)
    const broken = (name: string, problems: readonly WorkflowProblem[]) => [
      { name, source: file.source, problems: placed(file, problems) },
    ]
    const problems = file.problems.length > 0 ? file.problems : formProblems(definition)
    if (problems.length > 0) return broken(file.stem, problems)
    const { name } = definition
    try {
      this.#added.set(name, { file, remove: this.#parts.add(name, definition) })
      return []
    } catch (error) {
      return broken(name, [{ message: messageOf(error), path: 'name', hint: 'Rename the team' }])
    }
  }
}

/** A definition without a name gets that of its file. */
const named = ({ stem, value }: TeamFile) => ({ name: stem, ...(value as object) }) as TeamDefinition

const nameOf = (name: string, definition: TeamDefinition): WorkflowProblem[] =>
  definition.name === name ? [] : [{ message: `must be "${name}", the name in its plugin`, path: 'name' }]

const placed = ({ line }: TeamFile, problems: readonly WorkflowProblem[]): WorkflowProblem[] =>
  problems.map(problem => {
    const at = problem.line ?? line(problem.path)
    return at === undefined ? problem : { ...problem, line: at }
  })
