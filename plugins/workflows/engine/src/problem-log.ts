import type { Log } from '@svc/core'
import type { Library, LoadedWorkflow } from './library.ts'

/** Time between two looks at the files. A look reads only files that changed. */
const EVERY_MS = 5_000
const MAX_REPORTED = 3

/** Logs the problems of workflow files when they appear: otherwise a person sees them only when a run fails to start. */
export class ProblemLog {
  readonly #library: Pick<Library, 'files'>
  readonly #log: Log
  /** The problems that are already in the log, by file. */
  #logged = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined

  constructor(library: Pick<Library, 'files'>, log: Log) {
    this.#library = library
    this.#log = log
  }

  begin(): void {
    void this.#look()
    this.#timer = setInterval(() => void this.#look(), EVERY_MS).unref()
  }

  end(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    try {
      const broken = (await this.#library.files()).filter(({ file, problems }) => file !== undefined && problems.length > 0)
      const known = this.#logged
      this.#logged = new Map(broken.map(({ file, problems }) => [file!, JSON.stringify(problems)]))
      for (const loaded of broken) if (known.get(loaded.file!) !== this.#logged.get(loaded.file!)) this.#report(loaded)
    } catch (err) {
      this.#log.warn({ err }, 'failed to check the workflow files')
    }
  }

  #report({ name, source, problems }: LoadedWorkflow): void {
    const texts = problems.slice(0, MAX_REPORTED).map(({ path, line, message, hint }) => {
      const place = line === undefined ? path : `line ${line}${path === '' ? '' : `, ${path}`}`
      return [`${place === '' ? '' : `${place}: `}${message}`, hint].filter(Boolean).join('. ')
    })
    this.#log.warn(
      { workflow: name, file: source, problems: texts, total: problems.length },
      `the workflow file ${source} has problems, so it cannot run: svc workflows validate ${name}`
    )
  }
}
