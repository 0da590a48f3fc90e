import type { WorkflowDefinition } from '@svc/core/contracts'
import { plainDefinition } from '@svc/workflow-lang'
import { isNamed, nameOf } from './names.ts'
import type { Found } from './roots.ts'

/** The definitions that files hold, for those that name them: nothing is said of what is wrong with them. */
export class FileDefinitions {
  #byName: ReadonlyMap<string, Found> = new Map()
  readonly #read = new WeakMap<Found, WorkflowDefinition>()

  /** Takes all files as they are now; answers whether one is another than before. */
  take(files: readonly Found[]): boolean {
    const former = this.#byName
    this.#byName = new Map(files.toReversed().map(found => [nameOf(found.source), found]))
    return former.size !== this.#byName.size || this.#byName.entries().some(([name, found]) => former.get(name) !== found)
  }

  get(name: string): WorkflowDefinition | undefined {
    const found = this.#byName.get(name)
    if (!found) return undefined
    if (found.code) return 'definition' in found.code && isNamed(found.code.definition) ? found.code.definition : undefined
    const known = this.#read.get(found) ?? plainDefinition(found.text, found.source)
    this.#read.set(found, known)
    return known
  }
}
