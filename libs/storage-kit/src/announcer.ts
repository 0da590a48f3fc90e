import type { CallContext, Log } from '@svc/core'
import type { NodeBus } from '@svc/core/contracts'

export interface AnnouncerOptions {
  /** Without it, nothing is announced. */
  readonly bus: NodeBus | undefined
  readonly topic: string
  readonly log: Pick<Log, 'debug'>
  readonly lasting: CallContext
}

/** Other workers are woken at most once in this time. */
const EVERY_MS = 25

/** Tells the workers of a cluster that there is work, at most once in 25 ms. A message can be lost, so workers also look by themselves. */
export class Announcer {
  readonly #options: AnnouncerOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: AnnouncerOptions) {
    this.#options = options
  }

  announce(): void {
    const { bus, topic, lasting, log } = this.#options
    if (!bus || lasting.signal.aborted) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      bus.publish(topic, null, lasting).catch((err: unknown) => log.debug({ err }, 'failed to wake other workers'))
    }, EVERY_MS).unref()
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
