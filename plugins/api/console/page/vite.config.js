import { fileURLToPath } from 'node:url'
import { defaultClientConditions, defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  // `svc-source`: in the repository, the client is read from its sources
  resolve: {
    conditions: [...defaultClientConditions, 'svc-source'],
    // texts of schemas are only text, and the forms are a fifth smaller
    alias: { 'markdown-to-jsx/react': fileURLToPath(new URL('src/no-markdown.tsx', import.meta.url)) },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: '#jsx' } },
  build: {
    assetsDir: 'files',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    target: 'es2024',
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8000', '/health': 'http://127.0.0.1:8000' } },
})
