import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { type Answer, type Client, createClient } from './client.ts'
import { type Service, type ServiceOptions, startService } from './service.ts'
import { configureFew } from './tides.ts'

const STUCK = fileURLToPath(new URL('./stuck.ts', import.meta.url))

/** Two workers that both serve. */
export async function startTwo(options: ServiceOptions = {}): Promise<Service> {
  const service = await startService({ ...options, args: ['--workers', '2', ...(options.args ?? [])] })
  await service.seen(/"event":"worker_ready"/)
  return service
}

/** Profiles to switch between, and routes that tell a worker or hold it up. */
export async function configure(home: string): Promise<void> {
  await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: {}, other: {} }\n')
  await configureFew(home, { plugins: [STUCK] }, ['metrics'])
}

/** Their process ids, the oldest first. */
export const workersOf = async (home: string): Promise<number[]> => {
  using server = await reachServer(home)
  return server.info.workers.map(worker => worker.pid)
}

/** One answer over a connection of its own: whichever worker has its turn. */
export async function get(url: string, path: string) {
  const answer = await createClient(url, { keepAlive: false }).get(path)
  expect(answer.status, answer.text).to.equal(200)
  return answer
}

/** The same with a body. */
export const post = (url: string, path: string, body: unknown) => createClient(url, { keepAlive: false }).post(path, body)
/** So often each worker has had its turn. */
export const EACH = [1, 2, 3, 4]

/** The values of a family, summed over its labels. */
export async function metric(url: string, name: string, labels = ''): Promise<number> {
  const { text } = await get(url, '/metrics')
  const lines = text.split('\n').filter(line => line.startsWith(name) && line.includes(labels))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

/** A client whose one connection leads to such a worker. */
export async function clientTo(url: string, fits: (pid: number) => boolean): Promise<Client> {
  for (;;) {
    const client = createClient(url)
    if (fits(Number((await client.get('/pid')).text))) return client
    client.close()
  }
}

/** The status, or the code of what came instead of an answer. */
export const outcomeOf = (asked: Promise<Answer>) =>
  asked.then(
    answer => answer.status,
    (error: NodeJS.ErrnoException) => error.code
  )
