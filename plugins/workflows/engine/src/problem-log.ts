import { type CallContext, codeOf, type Log } from '@svc/core'
import type { Peers } from '@svc/core/contracts'
import type { WorkflowLibrary, LoadedWorkflow } from './library.ts'

/** Time between two looks at the files. A look reads only files that changed. */
const EVERY_MS = 5_000
const MAX_REPORTED = 3
/** The permit of the only worker of a server that logs. */
const PERMIT = 'workflows.problems'

interface ProblemLogOptions {
  readonly library: Pick<WorkflowLibrary, 'files'>
  /** Absent: this host runs alone. */
  readonly peers: Pick<Peers, 'acquire' | 'release'> | undefined
  readonly log: Log
  readonly lasting: CallContext
}

/**
 * Logs the problems of workflow files when they appear: otherwise a person sees them only when a run fails to start. Of several
 * workers one logs; when it ends, another takes over.
 */
export class ProblemLog {
  readonly #parts: ProblemLogOptions
  /** The problems that are already in the log, by file. */
  #logged = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined
  #hasPermit = false
  #hasEnded = false
  #isLooking = false

  constructor(parts: ProblemLogOptions) {
    this.#parts = parts
  }

  begin(): void {
    void this.#look()
    this.#timer = setInterval(() => void this.#look(), EVERY_MS).unref()
  }

  end(): void {
    this.#hasEnded = true
    clearInterval(this.#timer)
    this.#release()
  }

  #release(): void {
    if (this.#hasPermit) this.#parts.peers?.release(PERMIT, this.#parts.lasting).catch(() => {})
    this.#hasPermit = false
  }

  /** Whether this worker logs. */
  async #mayLog(): Promise<boolean> {
    const { peers, lasting } = this.#parts
    if (this.#hasPermit || peers === undefined) return true
    this.#hasPermit = await peers.acquire(PERMIT, 1, lasting).catch((error: unknown) => {
      // the worker has not joined its cluster yet
      if (codeOf(error) === 'BUS_NOT_JOINED') return false
      throw error
    })
    if (this.#hasEnded) this.#release()
    return this.#hasPermit
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      if (!(await this.#mayLog())) return
      const broken = (await this.#parts.library.files()).filter(({ file, problems }) => file !== undefined && problems.length > 0)
      const known = this.#logged
      this.#logged = new Map(broken.map(({ file, problems }) => [file!, JSON.stringify(problems)]))
      for (const loaded of broken) if (known.get(loaded.file!) !== this.#logged.get(loaded.file!)) this.#report(loaded)
    } catch (err) {
      if (!this.#hasEnded) this.#parts.log.warn({ err }, 'failed to check the workflow files')
    } finally {
      this.#isLooking = false
    }
  }

  #report({ name, source, problems }: LoadedWorkflow): void {
    const texts = problems.slice(0, MAX_REPORTED).map(({ path, line, message, hint }) => {
      const place = line === undefined ? path : `line ${line}${path === '' ? '' : `, ${path}`}`
      return [`${place === '' ? '' : `${place}: `}${message}`, hint].filter(Boolean).join('. ')
    })
    this.#parts.log.warn(
      { workflow: name, file: source, problems: texts, total: problems.length },
      `the workflow file ${source} has problems, so it cannot run: svc workflows validate ${name}`
    )
  }
}
