import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request that has been begun, on a connection that a worker serves already; `answer` ends it and reads what comes. */
export async function halfAsked(url: string, path: string) {
  const { port, hostname, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  // the server can end first
  socket.on('error', () => {})
  const half = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n`
  socket.write(`${half}\r\n`)
  await once(socket, 'data')
  socket.pause()
  socket.write(half)
  return {
    async answer() {
      socket.write('\r\n')
      return text(socket)
    },
    close: () => void socket.destroy(),
  }
}
