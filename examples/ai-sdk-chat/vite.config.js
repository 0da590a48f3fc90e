import { defineConfig } from 'vite'

/** The page and the API are one origin: the server needs no CORS. */
const proxy = { '/api': process.env.SVC_URL ?? 'http://127.0.0.1:8080' }

export default defineConfig({ server: { proxy }, preview: { proxy } })
