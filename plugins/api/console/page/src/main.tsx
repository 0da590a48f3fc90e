import './tokens.css'
import './styles.css'
import './manage.css'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { isApiError } from '@svc/client'
import { begin } from './api.ts'
import { applyDensity } from './density.ts'
import { createPageRouter } from './router.tsx'
import { applyTheme } from './theme.ts'

applyTheme()
applyDensity()

/** What a page has read stays until an event or the reader asks for it again: an idle page asks nothing. */
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: true,
      // the client repeats what is safe to repeat
      retry: (count, error) => count < 2 && isApiError(error) && error.status === 0,
    },
  },
})
// no event says that the data of a plugin has changed
queries.setQueryDefaults(['plugin-view'], { staleTime: 0 })

const router = createPageRouter(queries)
void begin()

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>
)
