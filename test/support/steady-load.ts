import { setTimeout } from 'node:timers/promises'
import { type Answer, type Client, createClient } from './client.ts'

/** Steps of a load that leaves the processor to what is measured. */
const PACE_MS = 15

/** Turns and reads over a connection that is kept, and over new ones, until it is stopped: that tells how many there were. */
export function startLoad(url: string) {
  const failures: string[] = []
  let done = 0
  let stopped = false
  const again = async (keepAlive: boolean) => {
    using client = disposable(createClient(url, { keepAlive }))
    while (!stopped) {
      const answers = [client.post('/api/v1/chat', { message: 'hello' }), client.get('/health/ready')]
      for (const { status, reason } of await Promise.all(answers.map(outcomeOf))) {
        done++
        if (status !== 200) failures.push(`${status} ${reason}`)
      }
      await setTimeout(PACE_MS)
    }
  }
  const running = [again(true), again(false)]
  return {
    failures,
    async stop() {
      stopped = true
      await Promise.all(running)
      return done
    },
  }
}

export const disposable = (client: Client) => ({ ...client, [Symbol.dispose]: () => client.close() })

const outcomeOf = (answer: Promise<Answer>): Promise<{ readonly status: number; readonly reason: string }> =>
  answer.then(
    ({ status, text }) => ({ status, reason: text }),
    (error: unknown) => ({ status: 0, reason: String(error) })
  )
