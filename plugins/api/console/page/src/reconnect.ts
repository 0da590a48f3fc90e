import { client, connection } from './api.ts'

const ASK_MS = 5_000

/** While the server does not answer, asks from time to time: all else that the page has asked can have given up. Returns how to end it. */
export function askWhileLost(): () => void {
  let timer: ReturnType<typeof setInterval> | undefined
  // the answer, whatever it is, shows that the server is back
  const ask = () => void client.get('/api/v1/me', { retry: false }).catch(() => {})
  const follow = () => {
    clearInterval(timer)
    timer = connection.get() === 'lost' ? setInterval(ask, ASK_MS) : undefined
  }
  follow()
  const leave = connection.subscribe(follow)
  return () => {
    clearInterval(timer)
    leave()
  }
}
