import { createConnection } from 'node:net'

/** Milliseconds from the request to the first bytes that contain this text, on a separate connection. */
export function firstToken(port: number, request: Buffer, text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let began = 0
    let seen = ''
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true }, () => {
      began = performance.now()
      socket.write(request)
    })
    socket.on('error', reject).on('close', () => reject(new Error(`no token came: ${seen.slice(0, 500)}`)))
    socket.on('data', chunk => {
      seen += chunk.toString('latin1')
      if (!seen.includes(text)) return
      resolve(performance.now() - began)
      socket.destroy()
    })
  })
}
