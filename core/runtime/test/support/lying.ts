import { type Channel, type ChannelOptions, openChannel, type Transport } from '@svc/runtime'
import { Clock, type ClockLog } from './clock.ts'
import { createClock } from './create-clock.ts'

/** A channel that offers a clock, and a far side that says what the test wants. */
export function lying(options: Partial<ChannelOptions> = {}) {
  const said: unknown[][] = []
  const waiting = new Set<() => void>()
  let speak: (value: unknown, bytes?: number) => void = () => {}
  let closed = false
  const transport: Transport = {
    send(value) {
      said.push(...(value as unknown[][]))
      for (const look of waiting) look()
    },
    listen(receive) {
      speak = receive
    },
    close() {
      closed = true
    },
  }
  const channel: Channel = openChannel(transport, { name: 'eve', self: 'svc', ...options })
  const log: ClockLog = { produced: 0, finished: [], aborted: [] }
  channel.offer('clock', Clock, createClock(log))
  /** What this side has said about a call. */
  const heard = (id: number, kind: number) =>
    new Promise<unknown>(resolve => {
      const look = () => {
        const found = said.find(message => message[0] === kind && message[1] === id)
        if (!found) return
        waiting.delete(look)
        resolve(found[2])
      }
      waiting.add(look)
      look()
    })
  const reported = (...messages: unknown[]) => speak(messages)
  /** Says it in a message of so many bytes. */
  const weigh = (bytes: number, ...messages: unknown[]) => speak(messages, bytes)
  return { channel, log, said, heard, speak: reported, weigh, isClosed: () => closed }
}
