import { isInputMethod, noAnswer } from './call/capabilities.ts'
import { readLog } from './call/log.ts'
import { createExchange, type Exchange } from './exchange.ts'
import { tooLarge } from './failures.ts'
import type { Settled } from './settled.ts'
import { type Link, type LinkEvents, type Message, unheard } from './transport/link.ts'
import { openLink } from './transport/open.ts'

/** A link, and who gets what comes over it. */
export interface Wiring {
  readonly link: Link
  readonly exchange: Exchange
  /** Something came that is of no use: too much of it ends the link. */
  readonly noise: () => void
  readonly toolsChanged: () => void
  /** The handshake is over. */
  readonly begin: (stateless: boolean) => void
}

export interface WiringEvents {
  /** The server says that its tools are others now. */
  readonly toolsChanged: () => void
}

export async function createWiring(
  settled: Settled,
  generation: number,
  { toolsChanged }: WiringEvents,
  signal: AbortSignal
): Promise<Wiring> {
  const { name, limits } = settled
  let stateless = false
  const isTooMuch = createFloodGauge(settled)
  const noise = () => {
    if (isTooMuch()) link.giveUp('it sends more than anybody asked for')
  }
  const events: LinkEvents = {
    take(message) {
      if (message.method !== undefined || !exchange.awaits(message.id)) noise()
      return exchange.take(message) || unasked(message)
    },
    tooLong: id => exchange.tooLong(id, tooLarge(name, limits.resultBytes)),
    noise,
  }

  function unasked({ id, method, params }: Message): boolean {
    if (method === 'notifications/tools/list_changed') toolsChanged()
    else if (method === 'notifications/message') log(params)
    else if (isId(id) && isInputMethod(method) && !stateless) ask(id, method, params)
    else return false
    return true
  }
  function log(params: unknown): void {
    const step = readLog(params)
    if (step !== undefined) exchange.asker()?.step?.(step)
  }
  function ask(id: string | number, method: Parameters<typeof noAnswer>[0], params: unknown): void {
    const asker = exchange.asker()
    if (asker?.ask !== undefined) asker.ask(id, method, params)
    // nobody knows whose question it is
    else link.send({ jsonrpc: '2.0', id, ...noAnswer(method) }, '', unheard)
  }

  const link = await openLink(settled, events, signal)
  const exchange = createExchange(name, generation, link, () => stateless)
  const begin = (isStateless: boolean) => {
    stateless = isStateless
  }
  return { link, exchange, noise, toolsChanged, begin }
}

const isId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number'

const WINDOW_S = 10

/** Says when more came within ten seconds than a server may send unasked. */
function createFloodGauge({ limits, clock }: Settled): () => boolean {
  let [begun, count] = [clock.now(), 0]
  return () => {
    const now = clock.now()
    if (now - begun > WINDOW_S * 1_000) [begun, count] = [now, 0]
    return ++count > WINDOW_S * limits.noticesPerSecond
  }
}
