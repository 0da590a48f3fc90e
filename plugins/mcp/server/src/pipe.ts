import type { Pipe } from '@svc/core/contracts'
import type { Published } from './published.ts'

/** One client at the other end of two streams. */
export const createPipe = (published: Published): Pipe => ({
  async serve(input, output, use) {
    use.signal.throwIfAborted()
    const { serveStdio } = await import('./stdio.ts')
    const line = await serveStdio(published, { input, output }, use)
    const close = () => void line.close()
    use.signal.addEventListener('abort', close, { once: true })
    await line.ended
    use.signal.removeEventListener('abort', close)
  },
})
